import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const exec = promisify(execFile)

export const root = fileURLToPath(new URL('../..', import.meta.url))

interface Manifest {
  exports: Readonly<Record<string, string | { types: string; default: string }>>
  dependencies?: Readonly<Record<string, string>>
  optionalDependencies?: Readonly<Record<string, string>>
  peerDependencies?: Readonly<Record<string, string>>
  peerDependenciesMeta?: Readonly<Record<string, unknown>>
}

export const manifestOf = (directory: string): Manifest =>
  JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as Manifest

/**
 * The packed package, installed in a directory of its own with the packages it depends on or may, the types of Node, and nothing else: what it
 * imports besides is not there. No registry is asked.
 */
export class InstalledPackage {
  private constructor(
    readonly directory: string,
    readonly files: readonly string[],
  ) {}

  static async install(): Promise<InstalledPackage> {
    if (!existsSync(join(root, 'dist/streams/index.js'))) throw new Error('there is no dist: npm run build makes it')
    const directory = mkdtempSync(join(tmpdir(), 'plugstream-pack-'))
    const packed = await exec('npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', directory], {
      cwd: root,
    })
    const [tarball] = JSON.parse(packed.stdout) as [{ filename: string; files: { path: string }[] }]
    const home = join(directory, 'node_modules/plugstream')
    mkdirSync(home, { recursive: true })
    await exec('tar', ['-xzf', join(directory, tarball.filename), '-C', home, '--strip-components=1'])
    const { dependencies, peerDependencies } = manifestOf(home)
    for (const name of [...Object.keys({ ...dependencies, ...peerDependencies }), '@types/node']) {
      mkdirSync(dirname(join(directory, 'node_modules', name)), { recursive: true })
      symlinkSync(join(root, 'node_modules', name), join(directory, 'node_modules', name))
    }
    return new InstalledPackage(directory, tarball.files.map(({ path }) => path).sort())
  }

  get home(): string {
    return join(this.directory, 'node_modules/plugstream')
  }

  /** Runs node in the directory and gives what it wrote. Rejects with its complaints where it fails or complains. */
  async node(args: readonly string[], env: Record<string, string> = {}): Promise<string> {
    const { stdout, stderr } = await exec(process.execPath, args, {
      cwd: this.directory,
      env: { ...process.env, ...env },
    })
    if (stderr !== '') throw new Error(stderr)
    return stdout
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true })
  }
}
