import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, openSync, closeSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { bootId } from '../../../lib/boot-id.js'
import { findRun } from '../../../lib/task/find-run.js'
import { isAlive, seeProcess, ticksNow } from '../../../lib/task/process-sight.js'
import type { TaskRecord } from '../../../lib/task/task-record.js'
import { needs } from '../../support/needs.js'

describe('finding a run that is on record', () => {
  before(function () {
    needs(this, process.platform === 'linux', 'only Linux tells one process from the next of its number')
  })

  let directory: string
  const begun: ChildProcess[] = []
  const left: number[] = []
  const gone = { state: 'X' } as const
  beforeEach(() => (directory = mkdtempSync(join(realpathSync(tmpdir()), 'plugstream-'))))
  afterEach(async () => {
    for (const child of begun.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      process.kill(-child.pid!, 'SIGKILL')
      await once(child, 'exit')
    }
    for (const pid of left.splice(0)) {
      process.kill(pid, 'SIGKILL')
      while (isAlive(seeProcess(pid) ?? gone));
    }
    rmSync(directory, { recursive: true })
  })

  const record = (fields: Partial<TaskRecord> = {}): TaskRecord => ({
    allocId: 'a',
    taskName: 't',
    digest: 'd',
    bootId: bootId() ?? '',
    fromTicks: ticksNow(),
    marks: [`ENDPOINT=${directory}/csi.sock`],
    outputs: [join(directory, 'log')],
    ...fields,
  })

  /** A process that leads a group, with the mark of the task or not, and its output where the task's goes or not. */
  async function begin(script: string, mark: boolean, output = false): Promise<ChildProcess & { pid: number }> {
    const log = output ? openSync(join(directory, 'log'), 'a') : undefined
    const child = spawn('/bin/sh', ['-c', script], {
      detached: true,
      env: mark ? { ENDPOINT: `${directory}/csi.sock` } : {},
      stdio: ['pipe', log ?? 'pipe', 'ignore'],
    })
    begun.push(child)
    await once(child, 'spawn')
    if (log !== undefined) closeSync(log)
    return child as ChildProcess & { pid: number }
  }

  const sightOf = ({ pid }: { pid: number }): { pid: number; startTicks: number } => ({
    pid,
    startTicks: seeProcess(pid)?.startTicks ?? -1,
  })

  it('gives the process that has its number and its start', async () => {
    const child = await begin('read line', false)
    const found = await findRun(record({ process: sightOf(child) }))
    expect(found).to.include(sightOf(child))
  })

  it('takes no other process of its number for it, though it be marked', async () => {
    const child = await begin('read line', false)
    const { pid, startTicks } = sightOf(child)
    expect(await findRun(record({ process: { pid, startTicks: startTicks - 1 } }))).to.be.undefined
  })

  it('takes nothing of before the machine started anew', async () => {
    const child = await begin('read line', true, true)
    expect(await findRun(record({ bootId: 'another', process: sightOf(child) }))).to.be.undefined
    expect(await findRun(record({ bootId: 'another' }))).to.be.undefined
  })

  for (const [by, mark, output] of [
    ['its endpoint', true, false],
    ['its output', false, true],
  ] as const)
    it(`finds one that had begun before that was on record, by ${by}`, async () => {
      const unfinished = record()
      const child = await begin('sleep 600 & read line', mark, output)
      expect(await findRun(unfinished)).to.include(sightOf(child))
    })

  it('finds none that is not marked, and none that began before', async () => {
    const unfinished = record()
    await begin('read line', false)
    expect(await findRun(unfinished)).to.be.undefined
    await begin('read line', true)
    expect(await findRun({ ...unfinished, fromTicks: ticksNow() + 1_000 })).to.be.undefined
  })

  it('finds what is left of the group of one that is gone, and not what has left that group', async () => {
    const from = record()
    const child = await begin('sleep 600 & one=$!; setsid sleep 600 & echo $one $!; read line', true)
    const process = sightOf(child)
    const [words] = (await once(child.stdout!, 'data')) as [Buffer]
    left.push(...words.toString().split(' ').map(Number))
    child.stdin!.end()
    await once(child, 'exit')
    // What was begun last may not have become its own program yet, and says nothing of itself while it does.
    let found = await findRun({ ...from, process })
    while (!found) found = await findRun({ ...from, process })
    expect(found).to.deep.include({ ...process, group: child.pid, state: 'X' })
  })
})
