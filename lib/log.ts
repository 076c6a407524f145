import debug from 'debug'

/**
 * The library's diagnostic output: `DEBUG=plugstream:*` shows it. One namespace a noun, one line an edge, none a beat, never a secret.
 */
export function logger(noun: 'registry' | 'store' | 'task' | 'health' | 'fingerprint' | 'host' | 'runner'): debug.Debugger {
  return debug(`plugstream:${noun}`)
}
