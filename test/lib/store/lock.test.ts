import { readFileSync, existsSync, writeFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { PlugstreamError } from '../../../lib/errors.js'
import { lockStateDir } from '../../../lib/store/lock.js'
import { program, scratchDir, source, type Program } from './scratch.js'

async function refusal(work: Promise<unknown>): Promise<PlugstreamError> {
  const thrown: unknown = await work.then(
    () => undefined,
    (failure: unknown) => failure,
  )
  expect(thrown).to.be.instanceOf(PlugstreamError)
  return thrown as PlugstreamError
}

/** A process that takes the lock when told to, says how that went, and then holds it. */
const contender = (stateDir: string): Program =>
  program(`
    import { once } from 'node:events'
    import { lockStateDir } from ${source('lib/store/lock.ts')}
    console.log('ready')
    await once(process.stdin, 'data')
    try {
      globalThis.lock = await lockStateDir(${JSON.stringify(stateDir)})
      console.log('held')
      setInterval(() => undefined, 1_000)
    } catch (failure) {
      console.log(failure.code)
      process.exit()
    }
  `)

async function told(one: Program): Promise<string> {
  expect(await one.line()).to.equal('ready')
  one.say('go')
  return one.line()
}

describe('the lock of a state directory', () => {
  const scratch = scratchDir()

  it('makes the directory for its owner alone, says who holds it, and leaves no note when it is released', async () => {
    const stateDir = scratch.file('state')
    const lock = await lockStateDir(stateDir)
    expect(statSync(stateDir).mode & 0o777).to.equal(0o700)
    const note = JSON.parse(readFileSync(join(stateDir, 'lock.json'), 'utf8')) as { pid: number; startedAt: string }
    expect(note.pid).to.equal(process.pid)
    expect(Date.parse(note.startedAt)).to.be.within(Date.now() - process.uptime() * 1_000 - 2_000, Date.now())
    await Promise.all([lock.release(), lock.release()])
    await lock.release()
    expect(existsSync(join(stateDir, 'lock.json'))).to.equal(false)
  })

  it('excludes a second host in the same process, and names it', async () => {
    const lock = await lockStateDir(scratch.path)
    for (let attempt = 0; attempt < 3; attempt++) {
      const refused = await refusal(lockStateDir(scratch.path))
      expect(refused.code).to.equal('ERR_STATE_LOCKED')
      expect(refused.message).to.contain(scratch.path).and.contain(`process ${process.pid}`)
      expect(refused.details.pid).to.equal(process.pid)
    }
    const other = contender(scratch.path)
    expect(await told(other), 'another process, after the attempts of this one').to.equal('ERR_STATE_LOCKED')
    await other.ended()
    await lock.release()
    await (await lockStateDir(scratch.path)).release()
  })

  it('excludes another process, and is free as soon as that one is killed', async () => {
    const holder = contender(scratch.path)
    expect(await told(holder)).to.equal('held')
    const refused = await refusal(lockStateDir(scratch.path))
    expect(refused.code).to.equal('ERR_STATE_LOCKED')
    expect(refused.details.pid).to.equal(holder.pid)
    await holder.kill()
    expect(existsSync(scratch.file('lock.json')), 'the note of the dead one').to.equal(true)
    await (await lockStateDir(scratch.path)).release()
  })

  it('is held by one of many processes that race for a fresh directory', async () => {
    const racers = Array.from({ length: 8 }, () => contender(scratch.path))
    for (const racer of racers) expect(await racer.line()).to.equal('ready')
    for (const racer of racers) racer.say('go')
    const answers = await Promise.all(racers.map((racer) => racer.line()))
    await Promise.all(racers.map((racer) => racer.kill()))
    expect(answers.sort()).to.deep.equal([...new Array<string>(7).fill('ERR_STATE_LOCKED'), 'held'])
  }).timeout(60_000)

  it('is never held twice by a hundred that race for it again and again', async () => {
    let held = 0
    let rounds = 0
    const race = async (): Promise<void> => {
      try {
        const lock = await lockStateDir(scratch.path)
        rounds++
        expect(++held).to.equal(1)
        await new Promise((resolve) => setImmediate(resolve))
        held--
        await lock.release()
      } catch (failure) {
        expect(failure).to.include({ code: 'ERR_STATE_LOCKED' })
      }
    }
    await Promise.all(Array.from({ length: 100 }, race))
    expect(rounds).to.be.at.least(1)
  })

  it('does not take the note of a process that is gone for a holder', async () => {
    writeFileSync(scratch.file('lock.json'), JSON.stringify({ pid: 2 ** 30, host: 'elsewhere', startedAt: 'long ago' }))
    const lock = await lockStateDir(scratch.path)
    expect((await refusal(lockStateDir(scratch.path))).details.pid).to.equal(process.pid)
    await lock.release()
  })

  it('says so where the holder is unknown', async () => {
    const lock = await lockStateDir(scratch.path)
    writeFileSync(scratch.file('lock.json'), '{"half')
    const refused = await refusal(lockStateDir(scratch.path))
    expect(refused.code).to.equal('ERR_STATE_LOCKED')
    expect(refused.message).to.contain('an unknown process')
    await lock.release()
  })

  it('rejects a directory that cannot be one', async () => {
    writeFileSync(scratch.file('state'), 'a file')
    expect((await refusal(lockStateDir(scratch.file('state')))).code).to.equal('ERR_STORE_WRITE')
  })
})
