import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { expect } from 'chai'
import { adoptedLeader } from '../../../lib/task/adopted-leader.js'
import { isAlive, seeProcess, ticksNow } from '../../../lib/task/process-sight.js'
import { needs } from '../../support/needs.js'

/** Begins a script as nobody's child, which leads a group of its own; gives its pid and, of what it starts, those it says. */
async function orphan(script: string): Promise<number[]> {
  const parent = spawn('/bin/sh', ['-c', `setsid /bin/sh -c '${script}' & `], { stdio: ['ignore', 'pipe', 'inherit'] })
  for await (const line of createInterface(parent.stdout)) return line.split(' ').map(Number)
  throw new Error('it says nothing')
}

describe('leader of a run that somebody else began', () => {
  before(function () {
    needs(this, process.platform === 'linux', 'only Linux tells one process from the next of its number')
  })

  const isThere = (pid: number): boolean => {
    const seen = seeProcess(pid)
    return seen !== undefined && isAlive(seen)
  }
  const sight = (pid: number): NonNullable<ReturnType<typeof seeProcess>> => {
    const seen = seeProcess(pid)
    if (!seen) throw new Error('it is gone')
    return seen
  }

  it('tells of its end, but not how it was, and reaches all it started', async () => {
    const [pid = 0, child = 0] = await orphan('sleep 600 & echo $$ $!; wait')
    const leader = adoptedLeader(sight(pid))
    const exit = new Promise((resolve) => leader.onExit(resolve))
    expect(await leader.group.alive()).to.have.members([pid, child])
    expect(await leader.group.signal('SIGKILL')).to.be.true
    expect(await exit).to.deep.equal({ code: null, signal: null })
    while ((await leader.group.alive()).length > 0);
    expect(isThere(child)).to.be.false
  })

  it('tells at once of an end that it is asked to look for', async () => {
    const [pid = 0] = await orphan('echo $$; exec sleep 600')
    const leader = adoptedLeader(sight(pid))
    let ended = false
    leader.onExit(() => (ended = true))
    leader.look?.()
    expect(ended).to.be.false
    process.kill(pid, 'SIGKILL')
    while (isThere(pid));
    leader.look?.()
    expect(ended).to.be.true
    leader.release()
  })

  it('still reaches what it has left behind', async () => {
    const [pid = 0, child = 0] = await orphan('sleep 600 & echo $$ $!')
    nextTick()
    const leader = adoptedLeader({ pid, state: 'X', group: pid, startTicks: 0 })
    expect(await new Promise((resolve) => leader.onExit(resolve))).to.deep.equal({ code: null, signal: null })
    expect(await leader.group.alive()).to.deep.equal([child])
    expect(await leader.group.signal('SIGKILL')).to.be.true
    while ((await leader.group.alive()).length > 0);
  })

  it('reaches nobody who came to have its number after it was gone', async function () {
    needs(this, mayChooseNumbers(), 'nobody but root can choose the next number of a process')
    const [pid = 0] = await orphan('echo $$; exec sleep 600')
    const leader = adoptedLeader(sight(pid))
    process.kill(pid, 'SIGKILL')
    while (seeProcess(pid));
    nextTick()
    const stranger = await withNumber(pid)
    expect(await leader.group.alive()).to.deep.equal([])
    expect(await leader.group.signal('SIGKILL')).to.be.false
    expect(stranger.kill('SIGTERM')).to.be.true
    expect(await once(stranger, 'exit')).to.deep.equal([null, 'SIGTERM'])
  })
})

/** Of what began in one tick, nobody can say what was first. */
function nextTick(): void {
  const begun = ticksNow()
  while (ticksNow() <= begun);
}

const lastNumber = '/proc/sys/kernel/ns_last_pid'

function mayChooseNumbers(): boolean {
  try {
    accessSync(lastNumber, constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Others begin processes too, so that it may take some tries. */
async function withNumber(pid: number): Promise<ChildProcess> {
  for (;;) {
    writeFileSync(lastNumber, String(pid - 1))
    const child = spawn('sleep', ['600'], { detached: true, stdio: 'ignore' })
    await once(child, 'spawn')
    if (child.pid === pid) return child
    child.kill('SIGKILL')
    await once(child, 'exit')
  }
}
