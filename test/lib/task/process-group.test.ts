import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'chai'
import { ProcessGroup } from '../../../lib/task/process-group.js'

describe('process group', () => {
  const begun: ChildProcess[] = []
  afterEach(async () => {
    for (const child of begun.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
  })

  /** The leader of a group of its own. */
  async function leader(script: string): Promise<ChildProcess & { pid: number }> {
    const child = spawn('/bin/sh', ['-c', script], { detached: true, stdio: ['pipe', 'pipe', 'inherit'] })
    begun.push(child)
    await once(child, 'spawn')
    return child as ChildProcess & { pid: number }
  }

  /** Lets a leader that reads a line go, and has the group know when it is reaped. */
  async function end(child: ChildProcess, group: ProcessGroup): Promise<void> {
    const reaped = once(child, 'exit')
    child.prependListener('exit', () => group.leaderReaped())
    child.stdin!.end()
    await reaped
  }

  async function firstLine(child: ChildProcess): Promise<number> {
    const [line] = (await once(child.stdout!, 'data')) as [Buffer]
    return Number(line.toString())
  }

  it('is its leader, and all it starts', async () => {
    const child = await leader('sleep 600 & echo $!; wait')
    const grandchild = await firstLine(child)
    const alive = await new ProcessGroup(child.pid).alive()
    if (process.platform === 'linux') expect(alive).to.have.members([child.pid, grandchild])
    else expect(alive).to.deep.equal([child.pid])
    process.kill(-child.pid, 'SIGKILL')
  })

  it('lives on in what its leader leaves behind, and is gone with the last of it', async () => {
    const child = await leader('sleep 600 & echo $!; read line')
    const group = new ProcessGroup(child.pid)
    const grandchild = await firstLine(child)
    await end(child, group)
    expect(await group.alive()).to.deep.equal([process.platform === 'linux' ? grandchild : child.pid])
    expect(group.signal('SIGKILL')).to.be.true
    while ((await group.alive()).length > 0) await delay(1)
  })

  it('is signalled no more once it was seen empty', async () => {
    const child = await leader('read line')
    const group = new ProcessGroup(child.pid)
    await end(child, group)
    expect(await group.alive()).to.deep.equal([])
    expect(group.signal('SIGKILL')).to.be.false
  })

  it('does not take a stranger for its own, who was given its number after it was gone', async () => {
    const stranger = await leader('echo $$; read line')
    await firstLine(stranger)
    const group = new ProcessGroup(stranger.pid) // the number of a leader that was reaped long ago
    group.leaderReaped()
    expect(group.signal('SIGKILL')).to.be.false
    expect(await group.alive()).to.deep.equal([])
    expect(stranger.exitCode ?? stranger.signalCode).to.equal(null)
    process.kill(stranger.pid, 0)
  })

  it('does not count zombies, which nobody may ever reap', async function () {
    if (process.platform !== 'linux') {
      this.test!.title += ' (skipped: only Linux tells zombies from the living)'
      return this.skip()
    }
    // The shell in brackets begins one `sleep`, leaves the group, and becomes another, which does not wait for the first.
    const child = await leader('(sleep 600 & echo $!; exec setsid sleep 600) & read line')
    const group = new ProcessGroup(child.pid)
    const zombie = await firstLine(child)
    await end(child, group)
    while (String(await group.alive()) !== String(zombie)) await delay(1)
    process.kill(zombie, 'SIGKILL')
    while ((await group.alive()).length > 0) await delay(1)
    const line = await readFile(`/proc/${zombie}/stat`, 'latin1')
    const [state, parent, number] = line.slice(line.lastIndexOf(')') + 2).split(' ')
    expect([state, number]).to.deep.equal(['Z', String(child.pid)])
    expect(group.signal('SIGKILL')).to.be.true // it is there, and that is all
    process.kill(Number(parent), 'SIGKILL')
  })
})
