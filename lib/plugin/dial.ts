import { connect } from 'node:net'
import { dialTimeoutMs, socketPathLimitBytes } from '../defaults.js'
import { codeOf, isAbsence, seeSocket } from './socket-sight.js'
import type { DialAnswer } from './socket.js'

/**
 * Connects to a unix socket and hangs up at once: is anybody there? Resolves when the connection is closed again, within
 * `dialTimeoutMs`, and never throws; an aborted dial comes to `failed`.
 *
 * The path is looked at first, since a connect to a regular file is refused just as one to a socket without a server.
 *
 * @example
 * const answer = await dial('/run/driver/csi.sock')
 * if (answer.kind === 'refused') … // left behind by a process that is gone
 */
export async function dial(socketPath: string, signal?: AbortSignal): Promise<DialAnswer> {
  const lengthBytes = Buffer.byteLength(socketPath)
  if (lengthBytes > socketPathLimitBytes) {
    return failed(`the path has ${lengthBytes} bytes; a socket path may have ${socketPathLimitBytes}`)
  }
  const bound = new AbortController()
  const timer = setTimeout(() => bound.abort(failed(`no answer within ${dialTimeoutMs} ms`)), dialTimeoutMs)
  const abort = (): void => bound.abort(failed('aborted'))
  signal?.addEventListener('abort', abort)
  if (signal?.aborted) abort()
  try {
    return await Promise.race([lookAndConnect(socketPath, bound.signal), ending(bound.signal)])
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
  }
}

async function lookAndConnect(socketPath: string, signal: AbortSignal): Promise<DialAnswer> {
  const sight = await seeSocket(socketPath)
  if (sight.kind === 'missing') return { kind: 'missing', description: `nothing is at ${socketPath}` }
  if (sight.kind === 'not-a-socket') return { kind: 'not-a-socket', description: `${socketPath} is no socket` }
  if (sight.kind === 'denied') return sight
  if (signal.aborted) return signal.reason as DialAnswer
  return connectOnce(socketPath, signal)
}

function connectOnce(socketPath: string, signal: AbortSignal): Promise<DialAnswer> {
  return new Promise((resolve) => {
    let answer: DialAnswer | undefined
    const socket = connect({ path: socketPath })
    const hangUp = (): void => void socket.destroy()
    signal.addEventListener('abort', hangUp)
    socket.once('connect', () => {
      answer = { kind: 'connected' }
      hangUp()
    })
    socket.on('error', (failure) => (answer ??= answerOf(failure)))
    socket.once('close', () => {
      signal.removeEventListener('abort', hangUp)
      resolve(answer ?? (signal.reason as DialAnswer))
    })
  })
}

function answerOf(failure: NodeJS.ErrnoException): DialAnswer {
  const code = codeOf(failure)
  const description = failure.message
  if (code === 'ECONNREFUSED') return { kind: 'refused', description }
  if (isAbsence(code)) return { kind: 'missing', description }
  if (code === 'EACCES' || code === 'EPERM') return { kind: 'denied', description }
  // Somebody listens and does not accept: a stopped process, mostly.
  if (code === 'EAGAIN') return failed(`${description}: its queue of connections is full`)
  return failed(description)
}

function failed(description: string): DialAnswer {
  return { kind: 'failed', description }
}

function ending(signal: AbortSignal): Promise<DialAnswer> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason as DialAnswer)
    else signal.addEventListener('abort', () => resolve(signal.reason as DialAnswer), { once: true })
  })
}
