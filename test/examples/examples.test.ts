import { expect } from 'chai'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** An example as a user runs it, with a scratch directory of its own that it has to leave empty. */
class Run {
  output = ''
  readonly child: ChildProcess
  readonly #scratch: string
  readonly #exit: Promise<unknown[]>

  static async start(example: string, ...args: string[]): Promise<Run> {
    return new Run(await mkdtemp(join(tmpdir(), 'plugstream-examples-')), example, args)
  }

  private constructor(scratch: string, example: string, args: readonly string[]) {
    this.#scratch = scratch
    this.child = spawn(process.execPath, ['--import', 'tsx/esm', `examples/${example}.ts`, ...args], {
      cwd: root,
      env: { ...process.env, TMPDIR: scratch },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.output += text))
    }
    this.#exit = once(this.child, 'close')
  }

  /** Resolves when the example has printed something; fails where it ends before that. */
  async prints(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.output)) {
      const ended = await Promise.race([
        once(this.child.stdout!, 'data').then(() => false),
        this.#exit.then(() => true),
      ])
      if (ended && !pattern.test(this.output)) throw new Error(`it ended without ${String(pattern)}:\n${this.output}`)
    }
  }

  /** Resolves when the example has ended well and has left neither a file nor a process. */
  async endsWell(): Promise<string> {
    const [code, signal] = await this.#exit
    expect({ code, signal }, this.output).to.deep.equal({ code: 0, signal: null })
    const left = (await readdir(this.#scratch)).filter((name) => !name.startsWith('tsx-')) // the loader's own cache
    expect(left, 'files left behind').to.deep.equal([])
    expect(await processesNaming(this.#scratch), 'processes left behind').to.deep.equal([])
    await rm(this.#scratch, { recursive: true })
    return this.output
  }
}

/** Running processes in whose command or environment a text stands. */
async function processesNaming(text: string): Promise<string[]> {
  if (process.platform !== 'linux') return []
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  const texts = await Promise.all(
    pids.map(async (pid) => {
      const parts = await Promise.all(
        ['cmdline', 'environ'].map((part) => readFile(`/proc/${pid}/${part}`, 'utf8').catch(() => '')),
      )
      return parts.join('\0')
    }),
  )
  return texts.filter((found) => found.includes(text)).map((found) => found.replaceAll('\0', ' ').slice(0, 200))
}

describe('examples', function () {
  this.timeout(120_000)

  const told: Record<string, RegExp[]> = {
    host: [/ebs csi-controller true ready/, /ebs csi-node true ready/],
    'registry-by-hand': [/hello from new, version 2/, /hello from old, version 1/, /#\d+ old 1\.0\.0, restored/],
    embed: [/files healthy\n.*crashes/, /files task-exited/, /files stopping/],
    'compose-your-own': [
      /health csi-node healthy/,
      /fingerprint csi-node 1\.2\.3 node-1 GET_VOLUME_STATS/,
      /deregistered/,
    ],
    'nomad-events': [
      /started b7c1 ebs before us\nexited b7c1 ebs code 2, comes back\nprestart b7c1 ebs \nstarted b7c1 ebs \n/,
      /exited b7c1 ebs code null\nstopped/,
    ],
    'grpc-plugin': [
      /clock ready/,
      /clock 1\.0\.0 says "?20\d\d-/,
      /clock not-ready \(the server is NOT_SERVING\)\nclock ready/,
    ],
    watch: [/the whole: first; 0 missed/, /registered second/, /the whole: .*; 3 missed/],
  }
  for (const [example, patterns] of Object.entries(told)) {
    it(`${example} does what it says, ends by itself and leaves nothing`, async () => {
      const output = await (await Run.start(example)).endsWell()
      for (const pattern of patterns) expect(output).to.match(pattern)
    })
  }

  it('the embedding host needs less than sixty lines', async () => {
    const text = await readFile(join(root, 'examples/embed.ts'), 'utf8')
    expect(text.split('\n').length).to.be.lessThan(60)
  })

  for (const name of ['host', 'volumes'])
    it(`the README's ${name} is the one that runs`, async () => {
      const between = (text: string, from: string, to: string): string =>
        text.slice(text.indexOf(from) + from.length, text.indexOf(to)).replace(/\s+/g, '')
      const example = await readFile(join(root, `examples/${name}.ts`), 'utf8')
      const readme = await readFile(join(root, 'README.md'), 'utf8')
      const [, rest = ''] = readme.split(`<!-- run by the tests: examples/${name}.ts -->`)
      const block = /^\s*```ts\n(.*?)```/s.exec(rest)?.[1]
      expect(block?.replace(/\s+/g, '')).to.equal(between(example, '// README: from here', '// README: to here'))
    })
})

describe('the tour', function () {
  this.timeout(180_000)

  it('shows a start, a crash, a newer version and a restart of the host, and ends by itself with --once', async () => {
    const output = await (await Run.start('tour', '--once')).endsWell()
    const steps = [
      /disk-1 registered as csi-controller disk 1\.0\.0/,
      /fingerprint\s+disk-1 csi-controller: .*CREATE_DELETE_VOLUME/,
      /disk-1 csi-node is unhealthy: task-exited/,
      /volume\s+mounted volume-\S+ for web-1/,
      /disk-1 csi-controller is healthy/,
      /its note says: written before the driver was killed/,
      /files-3 registered as csi-node files 2\.0\.0; current is files-3/,
      /files-3 deregistered as csi-node files 2\.0\.0; current is files-[12]/,
      /disk-1 restored as csi-controller disk 1\.0\.0/,
      /volume\s+kept volume-\S+ for web-1/,
      /volume\s+unmounted volume-\S+ for web-1/,
      /volume\s+done deleteVolume/,
      /SIGKILL until the health event\s+[\d.]+ ms/,
    ]
    for (const step of steps) expect(output).to.match(step)
  })

  it('stays up without --once, and closes on Ctrl-C', async () => {
    const run = await Run.start('tour')
    await run.prints(/The host stays up/)
    run.child.kill('SIGINT')
    await run.endsWell()
  })

  it('leaves nothing where it is interrupted half-way', async () => {
    const run = await Run.start('tour', '--once')
    await run.prints(/task\s+disk-1 started/)
    run.child.kill('SIGTERM')
    await run.endsWell()
  })
})
