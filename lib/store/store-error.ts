import { messageOf, PlugstreamError, type ErrorCode, type ErrorDetails } from '../errors.js'

/** A read that failed. Never answered with an empty result: what cannot be read is not absent. */
export function readFailed(doing: string, cause: unknown, details: ErrorDetails = {}): PlugstreamError {
  return failed('ERR_STORE_READ', doing, cause, details)
}

/** A write that failed. `details.busy` where somebody else holds the whole store, so that trying record by record is no use. */
export function writeFailed(doing: string, cause: unknown, details: ErrorDetails = {}): PlugstreamError {
  return failed('ERR_STORE_WRITE', doing, cause, details)
}

/** Whether SQLite said that another connection holds the file. */
export function isBusy(thrown: unknown): boolean {
  const code = (thrown as { code?: unknown } | null | undefined)?.code
  return code === 'SQLITE_BUSY' || code === 'SQLITE_LOCKED'
}

function failed(code: ErrorCode, doing: string, cause: unknown, details: ErrorDetails): PlugstreamError {
  if (cause instanceof PlugstreamError) return cause
  const busy = isBusy(cause) ? { busy: true } : {}
  return new PlugstreamError(code, `${doing}: ${messageOf(cause)}`, {
    cause,
    retryable: true,
    details: { ...busy, ...details },
  })
}
