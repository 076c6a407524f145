// The driver as a command.
import { fileURLToPath } from 'node:url'

/** The command that runs the driver; `options` are those of hostpath-driver.ts, without the dashes. */
export function hostpathCommand(
  options: Readonly<Record<string, string | readonly string[]>> = {},
): [string, ...string[]] {
  const program = fileURLToPath(new URL('../hostpath-driver.ts', import.meta.url))
  const flags = Object.entries(options).flatMap(([name, values]) =>
    [values].flat().flatMap((value) => [`--${name}`, value]),
  )
  return [process.execPath, '--import', import.meta.resolve('tsx/esm'), program, ...flags]
}
