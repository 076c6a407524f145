// The driver as a command.
import { fileURLToPath } from 'node:url'

/** The command that runs the driver; `options` are those of hostpath-driver.ts, without the dashes. */
export function hostpathCommand(options: Readonly<Record<string, string>> = {}): [string, ...string[]] {
  const program = fileURLToPath(new URL('../hostpath-driver.ts', import.meta.url))
  const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])
  return [process.execPath, '--import', import.meta.resolve('tsx/esm'), program, ...flags]
}
