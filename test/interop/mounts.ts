import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** What the kernel says is mounted below a directory, oldest first: mount points, each with its options. */
export function mountsBelow(directory: string): { path: string; readonly: boolean }[] {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').trimEnd().split('\n')
  return lines
    .map((line) => line.split(' '))
    .map(([, , , , path = '', options = '']) => ({ path, readonly: options.split(',').includes('ro') }))
    .filter(({ path }) => path.startsWith(`${directory}/`))
}

/** What a test that failed has left mounted goes, or its directory could not. */
export function unmountBelow(directory: string): void {
  for (const { path } of mountsBelow(directory).reverse()) execFileSync('umount', [path])
}

/** Makes a directory a shared mount of its own, as an engine needs it for mounts that go both ways. */
export function makeShared(directory: string): void {
  execFileSync('mount', ['--bind', directory, directory])
  execFileSync('mount', ['--make-shared', directory])
}
