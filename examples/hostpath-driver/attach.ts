import { execFile } from 'node:child_process'
import { lstat, mkdir, rm, rmdir, stat, symlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** How a volume comes to be seen at a path: by a bind mount, or else by a link to its directory. */
export interface Attach {
  readonly mode: 'bind mounts' | 'directory mode'
  /** Why bind mounts are not had; empty where they are. */
  readonly reason: string
  /** The target must not be there, or be an empty directory; anything else is refused by the system's own rmdir. */
  attach(source: string, target: string, readonly: boolean): Promise<void>
}

/** Tries whether this process may mount: only the kernel knows, root or not. */
export async function chooseAttach(directory: string): Promise<Attach> {
  const [source, target] = [join(directory, '.trial-source'), join(directory, '.trial-target')]
  try {
    if (process.platform !== 'linux') throw new Error('there are none on this system')
    await mkdir(source, { recursive: true })
    await bind(source, target, true)
    await run('umount', [target])
    return { mode: 'bind mounts', reason: '', attach: bind }
  } catch (failure) {
    return { mode: 'directory mode', reason: (failure as Error).message.trim().replaceAll('\n', ': '), attach: linkTo }
  } finally {
    for (const path of [source, target]) await rm(path, { recursive: true, force: true })
  }
}

async function bind(source: string, target: string, readonly: boolean): Promise<void> {
  await clear(target)
  await mkdir(target)
  await run('mount', ['-o', readonly ? 'bind,ro' : 'bind', source, target])
}

async function linkTo(source: string, target: string): Promise<void> {
  await clear(target)
  await symlink(source, target)
}

/** Fails for anything but an empty directory, and so for what is mounted already. */
async function clear(target: string): Promise<void> {
  if (await lstat(target).catch(() => undefined)) await rmdir(target)
}

/** Both paths lead to the same directory, be it by a mount or by a link. */
export async function isAttached(source: string, target: string): Promise<boolean> {
  const [a, b] = await Promise.all([source, target].map((path) => stat(path).catch(() => undefined)))
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino
}

/** Ends every attachment of the source at the target, and removes what is left there if it is empty. */
export async function detach(source: string, target: string): Promise<void> {
  while (await isAttached(source, target)) {
    if ((await lstat(target)).isSymbolicLink()) await unlink(target)
    else await run('umount', [target])
  }
  await rmdir(target).catch(() => undefined)
}
