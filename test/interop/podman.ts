import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { Agent } from 'node:http'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import Dockerode from 'dockerode'
import type { Context } from 'mocha'
import { needs } from '../support/needs.js'
import { unmountBelow } from './mounts.js'

const run = promisify(execFile)

/** Made by `image()`; `localhost`, so that no registry is asked for it. */
export const image = 'localhost/plugstream-test:1'
const programs = ['podman', 'runc', 'conmon', 'mount']
const init = ['/usr/libexec/podman/catatonit', '/usr/bin/catatonit', '/usr/local/libexec/podman/catatonit']

/** Skips where containers cannot be run, and says why. */
export function needsContainers(context: Context): void {
  const reason = noContainers()
  needs(context, reason === undefined, reason ?? '')
}

/** Why containers cannot be run here; undefined where they can. */
export function noContainers(): string | undefined {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'containers with mounts need root on Linux'
  const missing = programs.filter((name) => pathOf(name) === undefined)
  if (!init.some(existsSync)) missing.push('catatonit')
  return missing.length === 0 ? undefined : `containers need ${missing.join(', ')}`
}

/** A Podman with a store, a state and an API socket of its own, all in one directory, and gone with it. */
export class Podman implements AsyncDisposable {
  readonly directory = realpathSync(mkdtempSync(join(tmpdir(), 'ps-')))
  readonly socketPath = join(this.directory, 'api.sock')
  readonly docker = new Dockerode({ socketPath: this.socketPath, ...{ agent: new Agent({ keepAlive: false }) } })
  #service: ChildProcess | undefined
  #storage = 'overlay'

  static async start(): Promise<Podman> {
    const podman = new Podman()
    try {
      writeFileSync(podman.#file('conmon'), conmonInBundle, { mode: 0o755 })
      writeFileSync(podman.#file('containers.conf'), configuration(podman.#file('conmon')))
      // What a test serves has no certificate.
      writeFileSync(podman.#file('registries.conf'), '[[registry]]\nlocation = "127.0.0.1"\ninsecure = true\n')
      await podman.#command(['info']).catch(() => (podman.#storage = 'vfs')) // overlay does not stand on overlay
      await podman.#importImage()
      await podman.serve()
      return podman
    } catch (failure) {
      await podman[Symbol.asyncDispose]()
      throw failure
    }
  }

  /** Starts the API; resolves when it answers. */
  async serve(): Promise<void> {
    const service = spawn(
      'podman',
      [...this.#options(), 'system', 'service', '--time=0', `unix://${this.socketPath}`],
      {
        env: this.#env(),
        stdio: 'ignore',
      },
    )
    this.#service = service
    for (;;) {
      const answers = await this.docker.ping().then(
        () => true,
        () => false,
      )
      if (answers) return
      if (service.exitCode !== null) throw new Error(`podman has ended with code ${service.exitCode}`)
      await delay(20)
    }
  }

  /** Ends the API, and nothing that runs. */
  async stopServing(): Promise<void> {
    const service = this.#service
    this.#service = undefined
    if (!service || service.exitCode !== null || service.signalCode !== null) return
    const exit = once(service, 'exit')
    service.kill('SIGKILL')
    await exit
    rmSync(this.socketPath, { force: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#command(['rm', '--all', '--force', '--time=0']).catch(() => undefined)
    await this.stopServing()
    while (processesNaming(this.directory).length > 0) await delay(20) // what clears up behind each container
    unmountBelow(this.directory)
    rmSync(this.directory, { recursive: true, force: true })
  }

  /** The image: this Node, a shell, and the few programs that tests and drivers call, each with its libraries. */
  async #importImage(): Promise<void> {
    const root = this.#file('root')
    for (const name of ['proc', 'sys', 'dev', 'tmp', 'etc', 'run']) mkdirSync(join(root, name), { recursive: true })
    for (const name of ['sh', 'sleep', 'cat', 'mount', 'umount']) await copyProgram(`/bin/${name}`, root)
    await copyProgram(process.execPath, root)
    await run('tar', ['-C', root, '-cf', this.#file('image.tar'), '.'])
    rmSync(root, { recursive: true })
    const path = `${dirname(process.execPath)}:/usr/sbin:/usr/bin:/sbin:/bin`
    await this.#command(['import', '--change', `ENV PATH=${path}`, this.#file('image.tar'), image])
    rmSync(this.#file('image.tar'))
  }

  /** Writes an image of its store to a directory, which `ImageRegistry` can serve. */
  async push(name: string, directory: string): Promise<void> {
    await this.#command(['push', '--quiet', name, `dir:${directory}`])
  }

  async #command(args: readonly string[]): Promise<string> {
    return (await run('podman', [...this.#options(), ...args], { env: this.#env() })).stdout
  }

  #options(): string[] {
    const paths = ['--root', this.#file('store'), '--runroot', this.#file('run'), '--tmpdir', this.#file('tmp')]
    const choices = ['--storage-driver', this.#storage, '--runtime', 'runc', '--cgroup-manager', 'cgroupfs']
    return [...paths, ...choices, '--events-backend', 'file']
  }

  #env(): NodeJS.ProcessEnv {
    return {
      ...process.env,
      CONTAINERS_CONF: this.#file('containers.conf'),
      CONTAINERS_REGISTRIES_CONF: this.#file('registries.conf'),
    }
  }

  #file(name: string): string {
    return join(this.directory, name)
  }
}

/** Podman looks there for the note that a container was out of memory, and before 4.4 has it written where it was started itself. */
const conmonInBundle = `#!/bin/sh
for word; do
  [ "$before" != -b ] || cd "$word" || exit
  before=$word
done
exec conmon "$@"
`

/** Podman gives containers more than it has itself where it may; where it may not they do not start. */
function configuration(conmon: string): string {
  const limits = readFileSync('/proc/self/limits', 'utf8')
  const hard = (name: string): number => Number(new RegExp(`^${name} +\\S+ +(\\d+)`, 'm').exec(limits)?.[1] ?? Infinity)
  const most = Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8'))
  const files = Math.min(hard('Max open files'), 1_048_576)
  const processes = Math.min(hard('Max processes'), most, 32_768)
  const limit = `default_ulimits = ["nofile=${files}:${files}", "nproc=${processes}:${processes}"]`
  return `[containers]\n${limit}\n[engine]\nconmon_path = ["${conmon}"]\n`
}

async function copyProgram(path: string, root: string): Promise<void> {
  const { stdout } = await run('ldd', [path])
  for (const file of [path, ...(stdout.match(/\/\S+/g) ?? [])]) {
    mkdirSync(join(root, dirname(file)), { recursive: true })
    copyFileSync(file, join(root, file))
  }
}

function pathOf(program: string): string | undefined {
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin']
  return directories.map((directory) => join(directory, program)).find(existsSync)
}

/** Processes other than this one that have a text among their arguments. */
function processesNaming(text: string): string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return false
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(text)
    } catch {
      return false
    }
  })
}
