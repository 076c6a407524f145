import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/** A fresh directory for each test of the suite, removed after it. */
export function scratchDir(): { file(name: string): string; readonly path: string } {
  let path = ''
  beforeEach(() => {
    path = mkdtempSync(join(tmpdir(), 'plugstream-store-'))
  })
  afterEach(() => rmSync(path, { recursive: true, force: true }))
  return {
    file: (name) => join(path, name),
    get path() {
      return path
    },
  }
}

export interface Program {
  readonly pid: number
  /** The next line it writes; rejects with what it wrote on stderr if it ends instead. */
  line(): Promise<string>
  say(line: string): void
  kill(): Promise<void>
  /** Resolves when it has ended by itself. */
  ended(): Promise<void>
}

/** Runs a module, given as text, in a process of its own. It may import the files of this repository by URL. */
export function program(source: string): Program {
  const child = spawn(process.execPath, ['--import', 'tsx/esm', '--input-type=module', '-e', source], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let complaints = ''
  child.stderr.on('data', (data: Buffer) => (complaints += data.toString()))
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const closed = once(child, 'close')
  return {
    pid: child.pid ?? -1,
    line: async () => {
      const next = await lines.next()
      if (next.done) throw new Error(`the program ended: ${complaints}`)
      return next.value
    },
    say: (line) => child.stdin.write(`${line}\n`),
    kill: async () => {
      child.kill('SIGKILL')
      await closed
    },
    ended: async () => void (await closed),
  }
}

/** The URL of a file of this repository, quoted, for the text of a program. */
export function source(path: string): string {
  return JSON.stringify(new URL(`../../../${path}`, import.meta.url).href)
}

/** A process that holds a write lock on a SQLite file until it is killed. */
export async function holdLock(file: string): Promise<Program> {
  const holder = program(`
    import { KeyvSqlite } from '@keyv/sqlite'
    const adapter = new KeyvSqlite(${JSON.stringify(`sqlite://${file}`)})
    await adapter.query('BEGIN EXCLUSIVE')
    console.log('held')
    setInterval(() => undefined, 1_000)
  `)
  await holder.line()
  return holder
}
