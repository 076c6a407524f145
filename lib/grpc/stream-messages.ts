import { status, type ClientReadableStream } from '@grpc/grpc-js'

/**
 * The messages of a call as they are asked for. Leaving it, the signal, and a message that does not come within `waitMs` cancel the call;
 * without a `waitMs`, the next one is waited for as long as it takes.
 *
 * @throws the call's ServiceError; DEADLINE_EXCEEDED for a message that does not come.
 */
export async function* messagesOf(
  call: ClientReadableStream<object>,
  waitMs: number | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<object, void, undefined> {
  const messages = call[Symbol.asyncIterator]() as AsyncIterator<object>
  call.on('error', () => undefined) // one that comes after the reader has left is nobody's
  const cancel = (): void => call.cancel()
  signal?.addEventListener('abort', cancel)
  const wait = { tooLong: false }
  try {
    for (;;) {
      const tooLong = (): void => {
        wait.tooLong = true
        call.cancel()
      }
      const timer = waitMs === undefined ? undefined : setTimeout(tooLong, waitMs)
      const next = await messages.next().finally(() => clearTimeout(timer))
      if (next.done) return
      yield next.value
      // Messages that were read ahead are not for a reader who wants no more of them.
      if (signal?.aborted) throw failed(status.CANCELLED, 'the reader wants no more')
    }
  } catch (error) {
    throw wait.tooLong ? failed(status.DEADLINE_EXCEEDED, `no message within ${waitMs} ms`) : error
  } finally {
    signal?.removeEventListener('abort', cancel)
    call.cancel()
    await messages.return?.()
  }
}

function failed(code: status, details: string): Error {
  return Object.assign(new Error(details), { code, details })
}
