import type { TaskExit } from '../task/driver.js'

/** What the engine knows of the end of a container. */
export interface EndState {
  ExitCode: number
  OOMKilled: boolean
}

/** Signals that nobody exits with by himself. The others may be codes of programs that heed a signal: 143 is a common success. */
const deadly: Readonly<Record<number, string>> = {
  4: 'SIGILL',
  6: 'SIGABRT',
  7: 'SIGBUS',
  8: 'SIGFPE',
  9: 'SIGKILL',
  11: 'SIGSEGV',
}

/** The engine has one number for codes and signals: 128 and a signal's. */
export function exitOf({ ExitCode, OOMKilled }: EndState): TaskExit {
  const signal = deadly[ExitCode - 128]
  return {
    ...(signal === undefined ? { code: ExitCode, signal: null } : { code: null, signal }),
    ...(OOMKilled && { reason: 'out of memory' }),
  }
}
