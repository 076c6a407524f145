import { readdirSync, readFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Project paths with forward slashes, as in `lib/errors.ts`, and what the files say. */
export type Sources = ReadonlyMap<string, string>

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** Every TypeScript file of the given folders, but the generated ones and the programs of other packages. */
export function projectSources(...folders: string[]): Sources {
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) =>
      join(folder, name).split(sep).join('/'),
    ),
  )
  const ours = files.filter((file) => /\.[cm]?ts$/.test(file) && !/^lib\/csi\/generated\/|\/consumers\//.test(file))
  return new Map(ours.sort().map((file) => [file, readFileSync(join(root, file), 'utf8')]))
}
