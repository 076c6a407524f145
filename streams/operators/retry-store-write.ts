import { retry, throwError, timer, type MonoTypeOperatorFunction } from 'rxjs'
import { storeRetryMaxMs, storeRetryMs } from '../../lib/defaults.js'
import { PlugstreamError } from '../../lib/errors.js'

/** Makes a change again, after a growing pause, for as long as the store cannot save it. Any other failure flows on. */
export function retryStoreWrite<T>(): MonoTypeOperatorFunction<T> {
  return retry({
    delay: (failure, count) =>
      failure instanceof PlugstreamError && failure.code === 'ERR_STORE_WRITE'
        ? timer(Math.min(storeRetryMs * 2 ** (count - 1), storeRetryMaxMs))
        : throwError(() => failure as unknown),
  })
}
