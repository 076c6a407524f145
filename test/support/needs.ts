import type { Context } from 'mocha'

/** Skips the test with its reason where what it needs is not there; fails where everything has to be (`CI` is set). */
export function needs(context: Context, isThere: boolean, reason: string): void {
  if (isThere) return
  if (process.env['CI']) throw new Error(reason)
  process.stdout.write(`      skipped: ${reason}\n`)
  context.skip()
}
