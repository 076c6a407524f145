import { execFile } from 'node:child_process'
import { promisify } from 'node:util'

/** Runs a program to its end, and gives back what it says. */
export async function run(program: string, ...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(program, args)
  return stdout
}
