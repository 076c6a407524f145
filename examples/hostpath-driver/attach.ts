import { lstat, mkdir, mkdtemp, readlink, rm, rmdir, stat, symlink, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freeLoopDevices, loopDevice } from './loop.js'
import { run } from './run.js'

/** How a volume comes to be seen at a path: by a bind mount, or else by a link to its directory. */
export interface Attach {
  readonly mode: 'bind mounts' | 'directory mode'
  /** Why bind mounts are not had; empty where they are. */
  readonly reason: string
  /** Whether files can be made block devices, too. */
  readonly block: boolean
  /** The target must not be there, or be empty; anything else is refused by the system's own rmdir. */
  attach(source: string, target: string, options: readonly string[]): Promise<void>
}

/** Tries whether this process may mount: only the kernel knows, root or not. */
export async function chooseAttach(directory: string): Promise<Attach> {
  const trial = await mkdtemp(join(directory, '.trial-'))
  const [source, target, file] = [join(trial, 'source'), join(trial, 'target'), join(trial, 'file')]
  try {
    if (process.platform !== 'linux') throw new Error('there are none on this system')
    await mkdir(source)
    await bind(source, target, ['ro'])
    await run('umount', target)
    await writeFile(file, Buffer.alloc(4096))
    const block = await loopDevice(file, false).then(
      () => freeLoopDevices(file).then(() => true),
      () => false,
    )
    return { mode: 'bind mounts', reason: '', block, attach: bind }
  } catch (failure) {
    const reason = (failure as Error).message.trim().replaceAll('\n', ': ')
    return { mode: 'directory mode', reason, block: false, attach: symlinkTo }
  } finally {
    await rm(trial, { recursive: true, force: true })
  }
}

async function bind(source: string, target: string, options: readonly string[]): Promise<void> {
  if ((await stat(source)).isDirectory()) {
    await clearDirectory(target)
    await mkdir(target)
  } else {
    await clearFile(target)
    await writeFile(target, '', { flag: 'wx' })
  }
  await run('mount', '-o', ['bind', ...options].join(','), source, target)
}

async function symlinkTo(source: string, target: string): Promise<void> {
  await clearDirectory(target)
  await symlink(source, target)
}

/** Fails for anything but an empty directory, and so for what is mounted already. */
async function clearDirectory(target: string): Promise<void> {
  if (await lstat(target).catch(() => undefined)) await rmdir(target)
}

async function clearFile(target: string): Promise<void> {
  const there = await lstat(target).catch(() => undefined)
  if (there?.isFile() && there.size === 0) await unlink(target)
}

/** What a path leads to: two paths to one directory, or to one device, give the same. */
export async function identityOf(path: string): Promise<string | undefined> {
  const there = await stat(path).catch(() => undefined)
  return there && (there.isBlockDevice() ? `device ${there.rdev}` : `${there.dev}:${there.ino}`)
}

/** Ends every attachment at the target of what has one of these identities, and removes what is left there if it is empty. */
export async function detach(source: string, identities: readonly string[], target: string): Promise<void> {
  const isThere = async (): Promise<boolean> =>
    identities.includes((await identityOf(target)) ?? '') || (await readlink(target).catch(() => '')) === source
  while (await isThere()) {
    if ((await lstat(target)).isSymbolicLink()) await unlink(target)
    else await run('umount', target)
  }
  await clearFile(target)
  await clearDirectory(target).catch(() => undefined)
}
