import { expect } from 'chai'
import { socketPathLimitBytes } from '../../../lib/defaults.js'
import { PlugstreamError } from '../../../lib/errors.js'
import { validChange, validDefinition, validRef, validRegistration } from '../../../lib/plugin/validate.js'

const whole = {
  type: 'csi-node',
  name: 'ebs',
  allocId: 'a1',
  version: '1.2',
  provider: 'ebs.csi',
  connection: { socketPath: '/run/ebs.sock' },
  options: { taskName: 'driver' },
}

function refusal(work: () => unknown): { code: string; field: unknown; message: string } {
  try {
    work()
  } catch (thrown) {
    expect(thrown).to.be.instanceOf(PlugstreamError)
    const { code, details, message } = thrown as PlugstreamError
    return { code, field: details.field, message }
  }
  throw new Error('nothing was refused')
}

describe('a registration at the door', () => {
  it('is taken over frozen, in memory of its own', () => {
    const given = structuredClone(whole)
    const taken = validDefinition(given)
    given.connection.socketPath = given.options.taskName = given.name = 'changed'
    expect(taken).to.deep.equal(whole)
    for (const part of [taken, taken.connection, taken.options]) expect(Object.isFrozen(part)).to.equal(true)
  })

  it('is empty where something is left out, and loses what does not belong to it', () => {
    const { type, name, allocId, connection } = whole
    const taken = validDefinition({ type, name, allocId, connection, registeredAt: 5, health: 'good' })
    expect(taken).to.deep.equal({ type, name, allocId, connection, version: '', provider: '', options: {} })
  })

  it('may have an option of any name', () => {
    const options = JSON.parse('{"__proto__":"a","":"b","constructor":"c"}') as Record<string, string>
    expect(Object.entries(validDefinition({ ...whole, options }).options)).to.deep.equal(Object.entries(options))
  })

  const rows: [what: string, change: object, field: string][] = [
    ['no type', { type: undefined }, 'type'],
    ['an empty type', { type: '' }, 'type'],
    ['an empty name', { name: '' }, 'name'],
    ['a name that is no text', { name: 7 }, 'name'],
    ['an empty alloc', { allocId: '' }, 'allocId'],
    ['no connection', { connection: undefined }, 'connection'],
    ['no socket path', { connection: {} }, 'connection.socketPath'],
    ['an empty socket path', { connection: { socketPath: '' } }, 'connection.socketPath'],
    ['a relative socket path', { connection: { socketPath: 'run/ebs.sock' } }, 'connection.socketPath'],
    ['a socket path with NUL', { connection: { socketPath: '/run/a\0b' } }, 'connection.socketPath'],
    ['a version that is no text', { version: 1 }, 'version'],
    ['a provider that is no text', { provider: {} }, 'provider'],
    ['options that are a list', { options: [] }, 'options'],
    ['an option that is no text', { options: { taskName: null } }, 'options.taskName'],
  ]
  for (const [what, change, field] of rows) {
    it(`is refused for ${what}, naming ${field}`, () => {
      const refused = refusal(() => validDefinition({ ...whole, ...change }))
      expect(refused).to.include({ code: 'ERR_OPTION_INVALID', field })
      expect(refused.message).to.contain(field)
    })
  }

  it('is refused for a socket path over the limit of the platform in bytes, and not for one at it', () => {
    const fits = `/${'é'.repeat((socketPathLimitBytes - 1) / 2)}`
    expect(Buffer.byteLength(fits)).to.equal(socketPathLimitBytes)
    expect(validDefinition({ ...whole, connection: { socketPath: fits } }).connection.socketPath).to.equal(fits)
    const refused = refusal(() => validDefinition({ ...whole, connection: { socketPath: `${fits}x` } }))
    expect(refused).to.include({ code: 'ERR_SOCKET_PATH', field: 'connection.socketPath' })
    expect(refused.message)
      .to.contain(String(socketPathLimitBytes + 1))
      .and.contain(String(socketPathLimitBytes))
  })

  it('is refused where it is none at all', () => {
    for (const nonsense of [undefined, null, 1, 'ebs', [], () => undefined]) {
      expect(refusal(() => validDefinition(nonsense)).code).to.equal('ERR_OPTION_INVALID')
    }
  })
})

describe('a registration that somebody asks for', () => {
  it('is refused for a field that there is not, whose value is not shown, and taken where it is undefined', () => {
    const { connection } = whole
    const rows: [object, string][] = [
      [{ ...whole, verison: 'hunter2' }, 'verison'],
      [{ ...whole, connection: { ...connection, socket: 'hunter2' } }, 'connection.socket'],
    ]
    for (const [given, field] of rows) {
      const refused = refusal(() => validRegistration(given))
      expect(refused).to.include({ code: 'ERR_OPTION_INVALID', field })
      expect(refused.message).not.to.contain('hunter2')
      expect(refusal(() => validChange({ kind: 'register', plugin: given }))).to.deep.equal(refused)
    }
    expect(validRegistration({ ...whole, verison: undefined, registeredAt: 5 })).to.deep.equal(whole)
  })
})

describe('a change at the door', () => {
  it('is a registration or a deregistration, with a reason or without', () => {
    const { type, name, allocId } = whole
    const ref = { type, name, allocId }
    expect(validChange({ kind: 'register', plugin: whole })).to.deep.equal({ kind: 'register', plugin: whole })
    expect(validChange({ kind: 'deregister', ref: whole })).to.deep.equal({ kind: 'deregister', ref })
    const change = { kind: 'deregister', ref, reason: 'stopped' }
    expect(validChange({ ...change, generation: 1 })).to.deep.equal(change)
  })

  it('is refused where it is nonsense', () => {
    const rows: [unknown, string][] = [
      [undefined, 'change'],
      ['register', 'change'],
      [{}, 'kind'],
      [{ kind: 'move', plugin: whole }, 'kind'],
      [{ kind: 'update', ref: { ...whole, name: '' }, version: '2', provider: 'ebs.csi' }, 'name'],
      [{ kind: 'update', ref: whole, provider: 'ebs.csi' }, 'version'],
      [{ kind: 'update', ref: whole, version: '2' }, 'provider'],
      [{ kind: 'register' }, 'plugin'],
      [{ kind: 'deregister' }, 'ref'],
      [{ kind: 'deregister', ref: { ...whole, allocId: '' } }, 'allocId'],
      [{ kind: 'deregister', ref: whole, reason: 1 }, 'reason'],
    ]
    for (const [given, field] of rows) {
      expect(refusal(() => validChange(given))).to.include({ code: 'ERR_OPTION_INVALID', field })
    }
    expect(refusal(() => validRef({ type: 'a', name: '' })).field).to.equal('name')
  })
})
