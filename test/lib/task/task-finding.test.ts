import { expect } from 'chai'
import {
  findingOfEnd,
  findingOfFailure,
  findingOfHealth,
  findingsOfDelay,
  isWorthANote,
  type TaskFinding,
} from '../../../lib/task/task-finding.js'
import { task } from './plugin-task.js'

const last = {
  sick: { kind: 'plugin-unhealthy', message: 'x' },
  well: { kind: 'plugin-healthy', message: 'x' },
} as const
const sickBecause = (when: TaskFinding['when'], message = 'x'): TaskFinding => ({
  kind: 'plugin-unhealthy',
  reason: 'disconnected',
  message,
  when,
})

describe('what supervision finds out', () => {
  it('is a note of a loss only where the plugin was healthy', () => {
    expect([last.well, last.sick, undefined].map((note) => isWorthANote(sickBecause('loss'), note))).to.eql([
      true,
      false,
      false,
    ])
  })

  it('is a note of a change unless that was told last', () => {
    expect([last.well, last.sick, undefined].map((note) => isWorthANote(sickBecause('change', 'y'), note))).to.eql([
      true,
      false,
      true,
    ])
  })

  it('is a note of news unless the very same was told last', () => {
    const notes = [last.well, last.sick, undefined]
    expect(notes.map((note) => isWorthANote(sickBecause('news'), note))).to.eql([true, false, true])
    expect(isWorthANote(sickBecause('news', 'y'), last.sick)).to.equal(true)
  })

  it('is always a note where a restart is asked for', () => {
    const [, restarting] = findingsOfDelay({ reason: 'socket-missing', description: 'no socket' }, 100, '/s')
    expect(restarting && isWorthANote(restarting, last.sick)).to.equal(true)
  })

  it('says how a task ended', () => {
    const exited = { kind: 'exited', task: task(), at: 0, willRestart: true } as const
    expect(findingOfEnd({ ...exited, code: 3, signal: null }).message).to.equal('its task exited with code 3')
    expect(findingOfEnd({ ...exited, code: null, signal: 'SIGKILL' }).message).to.equal('its task was ended by SIGKILL')
    expect(findingOfEnd({ kind: 'stopping', task: task(), at: 0 }).reason).to.equal('stopping')
    expect(findingOfEnd({ kind: 'stopped', task: task(), at: 0 }).reason).to.equal('stopped')
  })

  it('says that a plugin is ready when all its instances are, and names the one that is not', () => {
    const event = (type: string, healthy: boolean) => ({
      plugin: { type, name: 'ebs', allocId: 'a', version: '', provider: '', connection: { socketPath: '' }, options: {}, registeredAt: 0 }, // prettier-ignore
      healthy,
      reason: healthy ? ('ready' as const) : ('disconnected' as const),
      description: 'it hung up',
      at: 0,
      final: false,
    })
    const [controller, node] = [event('csi-controller', true), event('csi-node', true)]
    expect(findingOfHealth([controller, node]).kind).to.equal('plugin-healthy')
    const { kind, reason, message } = findingOfHealth([controller, event('csi-node', false)])
    expect({ kind, reason, message }).to.eql({
      kind: 'plugin-unhealthy',
      reason: 'disconnected',
      message: 'csi-node ebs: it hung up',
    })
  })

  it('says what a failure says', () => {
    expect(findingOfFailure('csiPlugin.id is ""').message).to.equal('csiPlugin.id is ""')
  })
})
