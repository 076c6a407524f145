import { expect } from 'chai'
import { seqBlock } from '../../../lib/defaults.js'
import type { PluginInfo, PluginRef, RegistryEvent } from '../../../lib/plugin/plugin.js'
import { RegistryState } from '../../../lib/plugin/registry-state.js'
import { Draft } from '../../../lib/plugin/registry-step.js'
import { Sequence } from '../../../lib/plugin/sequence.js'
import { validDefinition, type ValidChange } from '../../../lib/plugin/validate.js'

const ref = (allocId: string, name = 'ebs', type = 'csi-node'): PluginRef => ({ type, name, allocId })

const register = (allocId: string, more: Partial<PluginInfo> = {}): ValidChange => ({
  kind: 'register',
  plugin: validDefinition({ ...ref(allocId), connection: { socketPath: `/run/${allocId}` }, ...more }),
})

const deregister = (allocId: string, more: { reason?: string; generation?: number } = {}): ValidChange => ({
  kind: 'deregister',
  ref: ref(allocId),
  ...more,
})

const update = (allocId: string, version: string): ValidChange => ({
  kind: 'update',
  ref: ref(allocId),
  version,
  provider: 'ebs.csi',
})

/** A state and its numbers, to which changes are applied as if they were saved at once. */
function registry(): {
  state: RegistryState
  apply(...changes: ValidChange[]): (RegistryEvent | undefined)[]
  draft: Draft
} {
  const state = new RegistryState()
  let seq = 0
  let at = 100
  const made = {
    state,
    draft: new Draft(state),
    apply: (...changes: ValidChange[]) => {
      made.draft = new Draft(state)
      for (const change of changes) made.draft.add(change, at++)
      return made.draft.steps.map((step) => state.commit(step, () => ++seq))
    },
  }
  return made
}

const allocs = (plugins: readonly PluginInfo[]): string[] => plugins.map(({ allocId }) => allocId)

describe('the state of the registry', () => {
  it('is changed only by what is committed', () => {
    const { state, apply } = registry()
    apply(register('a'))
    const draft = new Draft(state)
    draft.add(register('b'), 1)
    draft.add(register('a', { version: '2' }), 1)
    draft.add(deregister('a'), 1)
    expect(allocs(state.plugins())).to.deep.equal(['a'])
    expect(state.find(ref('a'))?.plugin.version).to.equal('')
    expect(state.nextOrder).to.equal(2)
  })

  it('registers, and makes the newest current', () => {
    const { state, apply } = registry()
    const [first, second] = apply(register('a'), register('b'))
    expect(first).to.deep.include({ kind: 'registered', seq: 1, at: 100, restored: false })
    expect(first?.current?.allocId).to.equal('a')
    expect(first).to.not.have.property('reason')
    expect(second?.current).to.equal(second?.plugin)
    expect(second?.plugin.registeredAt).to.equal(101)
    expect(allocs(state.instances('csi-node', 'ebs'))).to.deep.equal(['b', 'a'])
    expect(state.current('csi-node', 'ebs')?.allocId).to.equal('b')
  })

  it('does nothing where an instance is registered just so already', () => {
    const made = registry()
    const { state, apply } = made
    apply(register('a', { options: { x: '1', y: '2' } }))
    expect(apply(register('a', { options: { y: '2', x: '1' }, registeredAt: 1 }))).to.deep.equal([undefined])
    expect(state.find(ref('a'))?.plugin.registeredAt).to.equal(100)
    expect(made.draft.writes).to.deep.equal([])
    expect(made.draft.eventCount).to.equal(0)
  })

  const changes: [what: string, more: Partial<PluginInfo>][] = [
    ['the socket', { connection: { socketPath: '/other' } }],
    ['the version', { version: '2' }],
    ['the provider', { provider: 'other' }],
    ['an option', { options: { x: '2' } }],
    ['one option more', { options: { x: '1', y: '1' } }],
    ['no option any more', { options: {} }],
    ['another option of the same value', { options: { y: '1' } }],
  ]
  for (const [what, more] of changes) {
    it(`updates where ${what} is another, in its place and with its time`, () => {
      const { state, apply } = registry()
      const before = { options: { x: '1' } }
      apply(register('a', before), register('b'))
      const [event] = apply(register('a', { ...before, ...more }))
      expect(event).to.deep.include({ kind: 'updated', seq: 3 })
      expect(event?.plugin).to.deep.include({ registeredAt: 100, ...more })
      expect(event?.current?.allocId).to.equal('b')
      expect(allocs(state.instances('csi-node', 'ebs'))).to.deep.equal(['b', 'a'])
      expect(allocs(state.plugins())).to.deep.equal(['a', 'b'])
    })
  }

  it('makes the next newest current in the event that takes the current one away', () => {
    const { apply } = registry()
    apply(register('a'), register('b'), register('c'), deregister('b'))
    const [gone] = apply(deregister('c', { reason: 'stopping' }))
    expect(gone).to.deep.include({ kind: 'deregistered', reason: 'stopping' })
    expect(gone?.plugin.allocId).to.equal('c')
    expect(gone?.current?.allocId).to.equal('a')
    const [last] = apply(deregister('a'))
    expect(last?.current).to.equal(undefined)
  })

  it('does not touch the current instance when an older one goes late', () => {
    const { state, apply } = registry()
    apply(register('a'), register('b'))
    const [gone] = apply(deregister('a'))
    expect(gone?.plugin.allocId).to.equal('a')
    expect(gone?.current?.allocId).to.equal('b')
    expect(allocs(state.instances('csi-node', 'ebs'))).to.deep.equal(['b'])
  })

  it('ignores the deregistration of a type, name or alloc it does not know', () => {
    const { state, apply } = registry()
    apply(register('a'))
    for (const unknown of [ref('x'), ref('a', 'x'), ref('a', 'ebs', 'x')]) {
      expect(apply({ kind: 'deregister', ref: unknown })).to.deep.equal([undefined])
    }
    expect(state.size).to.equal(1)
  })

  it('ignores the deregistration of an earlier registration of the same ref', () => {
    const { state, apply } = registry()
    const generation = (): number => state.find(ref('a'))?.generation ?? -1
    apply(register('a'))
    const first = generation()
    apply(register('a'))
    const second = generation()
    apply(register('a', { version: '2' }))
    const third = generation()
    for (const stale of [first, second])
      expect(apply(deregister('a', { generation: stale }))).to.deep.equal([undefined])
    apply(deregister('a', { generation: third }), register('a'))
    expect(apply(deregister('a', { generation: third }))).to.deep.equal([undefined])
    expect(apply(deregister('a', { generation: generation() }))[0]?.kind).to.equal('deregistered')
  })

  it('updates what an instance says of itself, and leaves the rest and whose registration it is', () => {
    const made = registry()
    const { state, apply } = made
    apply(register('a', { options: { x: '1' } }), register('b'))
    const before = state.find(ref('a'))
    const generation = before?.generation ?? -1
    const plugin = { ...before?.plugin, version: '2', provider: 'ebs.csi' }
    const [event] = apply(update('a', '2'))
    expect(event).to.deep.include({ kind: 'updated', seq: 3, plugin })
    expect(apply(update('a', '2'))).to.deep.equal([undefined])
    expect(made.draft.writes).to.deep.equal([])
    apply(register('c'))
    expect(state.find(ref('c'))?.generation).to.be.greaterThan(state.find(ref('b'))?.generation ?? Infinity)
    expect(apply(deregister('a', { generation }))[0]?.kind).to.equal('deregistered')
  })

  it('registers nothing with an update: not what was never there, nor what is gone before it', () => {
    const { state, apply } = registry()
    expect(apply(update('a', '2'))).to.deep.equal([undefined])
    const events = apply(register('a'), deregister('a'), update('a', '2'))
    expect(events.map((event) => event?.kind)).to.deep.equal(['registered', 'deregistered', undefined])
    expect(state.size).to.equal(0)
  })

  it('puts a ref that was deregistered and comes back in as the newest, with a new time', () => {
    const { state, apply } = registry()
    apply(register('a'), register('b'), deregister('a'))
    const [again] = apply(register('a'))
    expect(again?.current?.allocId).to.equal('a')
    expect(again?.plugin.registeredAt).to.equal(103)
    expect(allocs(state.plugins())).to.deep.equal(['b', 'a'])
  })

  it('thinks each change through on top of those before it in one draft', () => {
    const made = registry()
    const events = made.apply(
      register('a'),
      register('a'),
      register('a', { version: '2' }),
      deregister('a'),
      deregister('a'),
      register('a'),
    )
    expect(events.map((event) => event?.kind)).to.deep.equal([
      'registered',
      undefined,
      'updated',
      'deregistered',
      undefined,
      'registered',
    ])
    expect(made.draft.writes.map(({ kind }) => kind)).to.deep.equal(['put', 'put', 'delete', 'put'])
    expect(made.draft.eventCount).to.equal(4)
  })

  it('keeps types and names apart, and lists the current instance of each plugin', () => {
    const { state, apply } = registry()
    apply(register('a'), register('b'), register('a', { type: 'csi-controller' }), register('c', { name: 'nfs' }))
    const names = (type?: string): string[] => state.list(type).map((one) => `${one.type} ${one.name} ${one.allocId}`)
    expect(names()).to.have.members(['csi-node ebs b', 'csi-controller ebs a', 'csi-node nfs c'])
    expect(names('csi-node')).to.have.members(['csi-node ebs b', 'csi-node nfs c'])
    expect(names('other')).to.deep.equal([])
    expect(allocs(state.instancesOf('a'))).to.deep.equal(['a', 'a'])
    apply({ kind: 'deregister', ref: ref('a', 'ebs', 'csi-controller') })
    expect(state.instancesOf('a').map(({ type }) => type)).to.deep.equal(['csi-node'])
    apply(deregister('a'))
    expect(state.instancesOf('a')).to.deep.equal([])
    expect(names('csi-controller')).to.deep.equal([])
  })

  it('takes names for names, whatever they mean to an object', () => {
    const { state, apply } = registry()
    for (const word of ['__proto__', 'constructor', 'toString']) {
      expect(state.list(word)).to.deep.equal([])
      apply(register(word, { type: word, name: word }))
      expect(state.current(word, word)?.allocId).to.equal(word)
    }
  })

  it('tells of what was restored as restored, until it is registered again', () => {
    const { state, apply } = registry()
    const plugin = (allocId: string): PluginInfo => ({
      ...validDefinition({ ...ref(allocId), connection: { socketPath: `/run/${allocId}` } }),
      registeredAt: 7,
    })
    state.restore({ plugin: plugin('a'), order: 4 }, 11, 50)
    state.restore({ plugin: plugin('b'), order: 9 }, 12, 50)
    const replayed = state.replay()
    expect(replayed.map(({ seq, restored, at }) => [seq, restored, at])).to.deep.equal([
      [11, true, 50],
      [12, true, 50],
    ])
    expect(replayed.map(({ current }) => current?.allocId)).to.deep.equal(['b', 'b'])
    expect(apply(register('a'))).to.deep.equal([undefined])
    expect(state.replay().map(({ restored }) => restored)).to.deep.equal([false, true])
    expect(apply(register('b', { version: '2' }))[0]).to.deep.include({ kind: 'updated', restored: false })
    expect(state.replay()[1]).to.deep.include({ seq: 12, restored: false })
    apply(register('c'))
    expect(state.find(ref('c'))?.order).to.equal(10)
  })

  it('gives the same list of all until something changes', () => {
    const { state, apply } = registry()
    apply(register('a'))
    const before = state.plugins()
    apply(deregister('x'))
    expect(state.plugins()).to.equal(before)
    apply(register('b'))
    expect(before).to.have.length(1)
    expect(state.plugins()).to.have.length(2)
  })
})

describe('sequence numbers', () => {
  it('are reserved in blocks, before they are used', () => {
    const sequence = new Sequence(0)
    const first = sequence.reserve(2)
    expect(first).to.deep.include({ kind: 'put', value: { schema: 1, reserved: seqBlock + 2 } })
    expect(sequence.reserve(1), 'not confirmed yet').to.not.equal(undefined)
    sequence.reserve(2)
    sequence.confirm()
    expect([sequence.next(), sequence.next()]).to.deep.equal([1, 2])
    expect(sequence.reserve(seqBlock)).to.equal(undefined)
    expect(sequence.reserve(seqBlock + 1)).to.not.equal(undefined)
  })

  it('begin above all that an earlier run may have used', () => {
    expect(new Sequence(seqBlock + 2).next()).to.equal(seqBlock + 3)
  })
})
