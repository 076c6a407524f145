import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { manifestOf, root, type InstalledPackage } from './installed-package.js'

/** Writes every resolved import, static or dynamic, to the file named in LOADED. */
const hook = `
  import { appendFileSync } from 'node:fs'
  export async function resolve(specifier, context, next) {
    const { url, ...rest } = await next(specifier, context)
    appendFileSync(process.env.LOADED, JSON.stringify([context.parentURL ?? '', url]) + '\\n')
    return { url, ...rest }
  }`

const program = `
  import { createRequire, register } from 'node:module'
  register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hook)}))
  await import('plugstream')
  console.log(JSON.stringify(Object.keys(createRequire(import.meta.url).cache)))
  process.exit() // opening nothing is another test
`

/** The packages a process has loaded after importing the main entry, and those that the package's own files import. */
export async function loadedPackages(installed: InstalledPackage): Promise<{ all: Set<string>; own: Set<string> }> {
  const log = join(installed.directory, 'loaded.jsonl')
  writeFileSync(log, '')
  writeFileSync(join(installed.directory, 'loaded.mjs'), program)
  const required = JSON.parse(await installed.node(['loaded.mjs'], { LOADED: log })) as string[]
  const lines = readFileSync(log, 'utf8').split('\n').filter(Boolean)
  const imported = lines.map((line) => JSON.parse(line) as [from: string, url: string])
  const own = imported.filter(([from]) => packageOf(from) === 'plugstream').map(([, url]) => packageOf(url))
  const all = [...required, ...imported.map(([, url]) => url)].map(packageOf)
  return {
    all: new Set(all.filter((name) => name !== undefined)),
    own: new Set(own.filter((name) => name !== undefined)),
  }
}

/** As in `@grpc/grpc-js`; nothing for what is in no package, Node's own modules among them. */
function packageOf(path: string): string | undefined {
  return /^.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]
}

/** The packages and all they depend on, or use where it is there (`debug` and its colours). */
export function withDependencies(names: readonly string[]): Set<string> {
  const found = new Set(names)
  for (const name of found) {
    const directory = join(root, 'node_modules', name)
    if (!existsSync(directory)) continue // optional, and not there
    const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = manifestOf(directory)
    const next = { ...dependencies, ...optionalDependencies, ...peerDependencies, ...peerDependenciesMeta }
    for (const one of Object.keys(next)) found.add(one)
  }
  return found
}
