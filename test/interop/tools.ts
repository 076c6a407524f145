import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import type { Context } from 'mocha'
import { needs } from '../support/needs.js'

const sources = fileURLToPath(new URL('.', import.meta.url))
const packages = ['./programs/...', 'github.com/kubernetes-csi/csi-test/v5/cmd/csi-sanity']
const buildTimeoutMs = 600_000

/** Where the programs in Go are, each under its name: `csi-sanity`, `health-server`, `mock-driver`, `sidecar`. Builds them where they are not there yet. */
export function tools(): Promise<string> {
  return (built ??= build())
}
let built: Promise<string> | undefined

/** For a `before` hook: the programs; without them its tests are skipped with the reason, or fail where everything has to be there. */
export async function needsTools(context: Context): Promise<string> {
  context.timeout(buildTimeoutMs)
  try {
    return await tools()
  } catch (failure) {
    needs(context, false, `the programs in Go cannot be built: ${(failure as Error).message}`)
    throw failure
  }
}

/** In a directory named for what they are built of, outside of the repository. */
async function build(): Promise<string> {
  const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'plugstream-interop')
  const directory = join(cache, await fingerprint())
  if (existsSync(directory)) return directory
  await mkdir(cache, { recursive: true })
  const unfinished = `${directory}.${process.pid}`
  try {
    await promisify(execFile)('go', ['build', '-trimpath', '-buildvcs=false', '-o', `${unfinished}/`, ...packages], {
      cwd: sources,
      timeout: buildTimeoutMs,
    })
    await rename(unfinished, directory)
  } catch (failure) {
    await rm(unfinished, { recursive: true, force: true })
    if (!existsSync(directory)) throw failure // somebody else may have built them meanwhile
  }
  return directory
}

async function fingerprint(): Promise<string> {
  const names = await readdir(sources, { recursive: true })
  const hash = createHash('sha256').update(`${process.platform} ${process.arch}`)
  for (const name of names.filter((name) => /\.(mod|sum|go)$/.test(name)).sort())
    hash.update(`${name}\0`).update(await readFile(join(sources, name)))
  return hash.digest('hex').slice(0, 16)
}
