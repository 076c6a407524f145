import debug from 'debug'

const loggers = new Map<string, debug.Debugger>()

/**
 * The library's diagnostic output: `DEBUG=plugstream:*` shows it. One namespace a noun, one line an edge, none a beat, never a secret.
 */
export function logger(noun: string): debug.Debugger {
  const known = loggers.get(noun) ?? debug(`plugstream:${noun}`)
  loggers.set(noun, known)
  return known
}
