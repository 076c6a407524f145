import { expect } from 'chai'
import { Keyv } from 'keyv'
import { config, Subject } from 'rxjs'
import type { PluginInfo, RegistryChange, RegistryEvent } from '../../lib/plugin/plugin.js'
import { memoryStore } from '../../lib/store/memory-store.js'
import { Registry, type Registration } from '../../streams/registry.js'
import { fakeStore, gate, type FakeStore } from '../fakes/fake-store.js'
import { allocs, plugin, ref, refusal, register, short } from './registry-values.js'

describe('the registry', () => {
  let store: FakeStore
  let registry: Registry
  let told: RegistryEvent[]
  beforeEach(async () => {
    store = fakeStore()
    registry = await Registry.open({ store })
    told = []
    registry.event$.subscribe((event) => told.push(event))
  })
  afterEach(() => registry.close())

  const savedKeys = (): string[] => [...store.records.keys()].filter((key) => key.startsWith('plugin/'))

  describe('registering', () => {
    it('saves, then tells, then resolves with what was registered', async () => {
      const order: string[] = []
      store.onSave = async (batch, keep) => {
        keep(batch)
        order.push('saved')
      }
      registry.event$.subscribe(({ kind, plugin }) => {
        expect(registry.get(plugin), 'what is told is true').to.equal(plugin)
        order.push(kind)
      })
      const before = Date.now()
      const registration = await registry.register(plugin('a', { version: '1', options: { taskName: 't' } }))
      order.push('resolved')
      expect(order).to.deep.equal(['saved', 'registered', 'resolved'])
      expect(registration.plugin).to.equal(told[0]?.plugin)
      expect(registration.plugin).to.deep.include({
        ...plugin('a'),
        version: '1',
        provider: '',
        options: { taskName: 't' },
      })
      expect(registration.plugin.registeredAt).to.be.within(before, Date.now())
      expect(Object.isFrozen(registration.plugin)).to.equal(true)
      expect(savedKeys()).to.deep.equal(['plugin/csi-node/ebs/a'])
    })

    it('shows nothing of an instance before it is saved', async () => {
      const saving = gate()
      store.onSave = (batch, keep) => saving.opened.then(() => keep(batch))
      const registered = registry.register(plugin('a'))
      expect(registry.get(ref('a'))).to.equal(undefined)
      expect([registry.list(), registry.instances('csi-node', 'ebs'), registry.instancesOf('a')]).to.deep.equal([
        [],
        [],
        [],
      ])
      saving.open()
      await registered
      expect(allocs(registry.instancesOf('a'))).to.deep.equal(['a'])
    })

    it('takes nothing over from what was given but what it said at that time', async () => {
      const given = { ...plugin('a'), options: { taskName: 't' } }
      const registered = registry.register(given)
      given.options.taskName = given.connection.socketPath = 'changed'
      expect((await registered).plugin).to.deep.include({ ...plugin('a'), options: { taskName: 't' } })
    })

    it('writes nothing and tells nobody where it is registered just so already', async () => {
      const { plugin: first } = await registry.register(plugin('a', { options: { x: '1' } }))
      const saves = store.saves.length
      const { plugin: second } = await registry.register(plugin('a', { options: { x: '1' }, registeredAt: 1 }))
      expect(second).to.equal(first)
      expect([store.saves.length - saves, told.length]).to.deep.equal([0, 1])
    })

    it('updates where anything else is another, in its place', async () => {
      const { plugin: first } = await registry.register(plugin('a'))
      await registry.register(plugin('b'))
      const { plugin: second } = await registry.register(plugin('a', { connection: { socketPath: '/elsewhere' } }))
      expect(second).to.deep.equal({ ...first, connection: { socketPath: '/elsewhere' } })
      expect(told.map(short)).to.deep.equal([
        'registered a, current a',
        'registered b, current b',
        'updated a, current b',
      ])
    })

    it('refuses what is not valid, naming the field, and queues nothing', async () => {
      for (const [given, field] of [
        [plugin('', {}), 'allocId'],
        [plugin('a', { name: '' }), 'name'],
        [plugin('a', { type: '' }), 'type'],
        [plugin('a', { connection: { socketPath: '' } }), 'connection.socketPath'],
      ] as const) {
        const refused = await refusal(registry.register(given))
        expect(refused).to.deep.include({ code: 'ERR_OPTION_INVALID', details: { field } })
      }
      const long = plugin('a', { connection: { socketPath: `/${'x'.repeat(200)}` } })
      expect((await refusal(registry.register(long))).code).to.equal('ERR_SOCKET_PATH')
      expect([store.saves, told]).to.deep.equal([[], []])
    })

    it('numbers events one after the other, and gives no two the same', async () => {
      await Promise.all(['a', 'b', 'c'].map((alloc) => registry.register(plugin(alloc))))
      await registry.deregister(ref('b'))
      expect(told.map(({ seq }) => seq)).to.deep.equal([1, 2, 3, 4])
    })
  })

  describe('deregistering', () => {
    it('answers false for a type, name or alloc that is not registered, and does nothing', async () => {
      await registry.register(plugin('a'))
      const saves = store.saves.length
      for (const unknown of [ref('x'), ref('a', 'x'), ref('a', 'ebs', 'x')]) {
        expect(await registry.deregister(unknown)).to.equal(false)
      }
      expect([store.saves.length - saves, told.length, registry.list().length]).to.deep.equal([0, 1, 1])
    })

    it('tells of exactly the instance it was about, with the reason, and of who is current now', async () => {
      for (const alloc of ['a', 'b', 'c']) await registry.register(plugin(alloc))
      expect(await registry.deregister(ref('b'), 'stopping')).to.equal(true)
      expect(await registry.deregister(ref('c'))).to.equal(true)
      expect(told.slice(3).map(short)).to.deep.equal(['deregistered b, current c', 'deregistered c, current a'])
      expect(told.slice(3).map(({ reason }) => reason)).to.deep.equal(['stopping', undefined])
      expect(allocs(registry.list())).to.deep.equal(['a'])
      expect(savedKeys()).to.deep.equal(['plugin/csi-node/ebs/a'])
    })

    it('refuses what is no ref', async () => {
      expect((await refusal(registry.deregister(ref('')))).details.field).to.equal('allocId')
      expect((await refusal(registry.deregister(ref('a'), 1 as never))).details.field).to.equal('reason')
    })
  })

  describe('a registration', () => {
    it('deregisters itself, once, and nothing else', async () => {
      const first = await registry.register(plugin('a'))
      await registry.register(plugin('b'))
      await Promise.all([first.deregister('stopping'), first.deregister()])
      await first.deregister()
      expect(told.slice(2).map(short)).to.deep.equal(['deregistered a, current b'])
      expect(told[2]?.reason).to.equal('stopping')
    })

    it('does nothing to a later registration of the same ref', async () => {
      const first = await registry.register(plugin('a'))
      await first.deregister()
      const second = await registry.register(plugin('a'))
      await first.deregister()
      expect(allocs(registry.list())).to.deep.equal(['a'])
      const third = await registry.register(plugin('a'))
      await second.deregister()
      expect(allocs(registry.list()), 'also where that changed nothing').to.deep.equal(['a'])
      const fourth = await registry.register(plugin('a', { version: '2' }))
      await third.deregister()
      expect(allocs(registry.list()), 'or was an update').to.deep.equal(['a'])
      await fourth.deregister()
      expect(registry.list()).to.deep.equal([])
    })

    it('is stale as soon as a later one is in the queue before its deregistration', async () => {
      const first = await registry.register(plugin('a'))
      await Promise.all([registry.register(plugin('a', { version: '2' })), first.deregister()])
      expect(registry.get(ref('a'))?.version).to.equal('2')
    })

    it('is not stale for what the instance itself has said since', async () => {
      const registration = await registry.register(plugin('a'))
      const event = await registry.apply({ kind: 'update', ref: ref('a'), version: '2', provider: 'ebs.csi' })
      expect(event?.kind).to.equal('updated')
      await registration.deregister()
      expect(registry.list()).to.deep.equal([])
    })

    it('of a monolith is one of two, each with a closure of its own', async () => {
      const controller = await registry.register(plugin('a', { type: 'csi-controller' }))
      const node = await registry.register(plugin('a'))
      await controller.deregister()
      expect(registry.list().map(({ type }) => type)).to.deep.equal(['csi-node'])
      await node.deregister()
      expect(told.map(({ kind, plugin }) => `${kind} ${plugin.type}`)).to.deep.equal([
        'registered csi-controller',
        'registered csi-node',
        'deregistered csi-controller',
        'deregistered csi-node',
      ])
    })

    it('ends with its scope', async () => {
      const use = async (): Promise<void> => {
        await using registration: Registration = await registry.register(plugin('a'))
        expect(registry.get(registration.plugin)).to.equal(registration.plugin)
      }
      await use()
      expect(registry.list()).to.deep.equal([])
    })
  })

  describe('the queue', () => {
    it('keeps the order of calls, of sources and of subscribers who cause changes', async () => {
      const source$ = new Subject<RegistryChange>()
      registry.connect(source$)
      const other: string[] = []
      registry.event$.subscribe((event) => {
        if (short(event) === 'registered a, current a') registry.next({ kind: 'deregister', ref: ref('a') })
        other.push(short(event))
      })
      const all = [registry.register(plugin('a')), registry.register(plugin('b'))]
      source$.next(register('c'))
      all.push(registry.register(plugin('d')))
      await Promise.all(all)
      await registry.register(plugin('e'))
      expect(other).to.deep.equal(told.map(short))
      expect(other.map((line) => line.split(',')[0])).to.deep.equal([
        'registered a',
        'registered b',
        'registered c',
        'registered d',
        'deregistered a',
        'registered e',
      ])
    })

    it('never saves twice at a time, and saves together what waited', async () => {
      let inFlight = 0
      store.onSave = async (batch, keep) => {
        expect(++inFlight).to.equal(1)
        await new Promise((resolve) => setImmediate(resolve))
        keep(batch)
        inFlight--
      }
      await Promise.all(Array.from({ length: 300 }, (_, at) => registry.register(plugin(`a${at}`))))
      expect(store.saves).to.have.length(2)
      expect(allocs(registry.instances('csi-node', 'ebs')).reverse()).to.deep.equal(
        told.map(({ plugin }) => plugin.allocId),
      )
    })

    it('applies what comes by `apply`, and says what came of it', async () => {
      expect(await registry.apply(register('a'))).to.equal(told[0])
      expect(await registry.apply(register('a'))).to.equal(undefined)
      expect(await registry.apply({ kind: 'deregister', ref: ref('x') })).to.equal(undefined)
      expect((await registry.apply({ kind: 'deregister', ref: ref('a'), reason: 'r' }))?.reason).to.equal('r')
      expect((await refusal(registry.apply({ kind: 'x' } as never))).code).to.equal('ERR_OPTION_INVALID')
    })
  })

  describe('a subscriber', () => {
    const uncaught: unknown[] = []
    beforeEach(() => {
      uncaught.length = 0
      config.onUnhandledError = (failure) => uncaught.push(failure)
    })
    afterEach(() => (config.onUnhandledError = null))

    it('that throws disturbs nobody, and its throw is not hidden', async () => {
      const failure = new Error('thrown by a subscriber')
      registry.event$.subscribe(() => {
        throw failure
      })
      registry.watch$.subscribe(() => {
        throw failure
      })
      const after: string[] = []
      registry.event$.subscribe((event) => after.push(short(event)))
      await registry.register(plugin('a'))
      await registry.register(plugin('b'))
      expect(after).to.deep.equal(told.map(short)).and.have.length(2)
      await new Promise((resolve) => setTimeout(resolve)) // RxJS throws it in a turn of its own
      expect(uncaught).to.deep.equal([failure, failure, failure, failure])
    })

    it('that comes while an event is told gets what is there, and nothing twice', async () => {
      const late: string[][] = []
      registry.event$.subscribe(() => {
        const seen: string[] = []
        late.push(seen)
        registry.watch$.subscribe((event) => seen.push(event.plugin.allocId))
      })
      await Promise.all(['a', 'b', 'c'].map((alloc) => registry.register(plugin(alloc))))
      expect(late).to.deep.equal(Array.from({ length: 3 }, () => ['a', 'b', 'c']))
    })

    it('that makes a change while it is shown what is there misses nothing', async () => {
      await registry.register(plugin('a'))
      store.onSave = (batch, keep) => {
        keep(batch)
        return []
      }
      const seen: string[] = []
      registry.watch$.subscribe((event) => {
        if (seen.length === 0) registry.next(register('b'))
        seen.push(event.plugin.allocId)
      })
      expect(seen).to.deep.equal(['a', 'b'])
      expect(told.map(({ plugin }) => plugin.allocId)).to.deep.equal(['a', 'b'])
    })
  })

  it('shows watchers each present instance as it is now, oldest first, in growing numbers', async () => {
    for (const alloc of ['a', 'b', 'c']) await registry.register(plugin(alloc))
    await registry.register(plugin('a', { version: '2' }))
    await registry.deregister(ref('b'))
    const seen: RegistryEvent[] = []
    registry.watch$.subscribe((event) => seen.push(event))
    await registry.register(plugin('d'))
    expect(seen.map(short)).to.deep.equal([
      'registered a, current c',
      'registered c, current c',
      'registered d, current d',
    ])
    expect(seen[0]?.plugin.version).to.equal('2')
    expect(seen.map(({ seq }) => seq)).to.deep.equal([1, 3, 6])
    expect(seen.map(({ restored }) => restored)).to.deep.equal([false, false, false])
  })

  describe('waiting for a plugin', () => {
    it('ends at once where it is registered, and with the event where it is not yet', async () => {
      let resolved: PluginInfo | undefined
      const waiting = registry.waitFor('csi-node', 'ebs').then((found) => (resolved = found))
      await registry.register(plugin('a', { name: 'nfs' }))
      await registry.register(plugin('a', { type: 'csi-controller' }))
      expect(resolved).to.equal(undefined)
      const { plugin: registered } = await registry.register(plugin('b'))
      expect(await waiting).to.equal(registered)
      await registry.register(plugin('c'))
      expect((await registry.waitFor('csi-node', 'ebs', { timeoutMs: 0 })).allocId).to.equal('c')
    })

    it('ends with ERR_TIMEOUT, ERR_ABORTED or ERR_CLOSED', async () => {
      expect((await refusal(registry.waitFor('csi-node', 'ebs', { timeoutMs: 1 }))).code).to.equal('ERR_TIMEOUT')
      const controller = new AbortController()
      const waiting = refusal(registry.waitFor('csi-node', 'ebs', { signal: controller.signal, timeoutMs: 60_000 }))
      controller.abort()
      expect((await waiting).code).to.equal('ERR_ABORTED')
      const { signal } = controller
      expect((await refusal(registry.waitFor('csi-node', 'ebs', { signal }))).code).to.equal('ERR_ABORTED')
      const closing = refusal(registry.waitFor('csi-node', 'ebs', { timeoutMs: 60_000 }))
      await registry.close()
      expect((await closing).code).to.equal('ERR_CLOSED')
      expect((await refusal(registry.waitFor('csi-node', 'ebs'))).code).to.equal('ERR_CLOSED')
    })

    it('refuses a time that is none', async () => {
      for (const timeoutMs of [-1, NaN, Infinity, 2 ** 31]) {
        expect((await refusal(registry.waitFor('csi-node', 'ebs', { timeoutMs }))).details.field).to.equal('timeoutMs')
      }
      expect((await refusal(registry.waitFor('csi-node', ''))).details.field).to.equal('name')
    })
  })

  describe('dispensing', () => {
    it('gives what the dispenser of the type makes for the current instance', async () => {
      const given = await Registry.open({
        store: memoryStore(),
        dispensers: { 'csi-node': ({ allocId }) => `client of ${allocId}` },
      })
      await given.register(plugin('a'))
      await given.register(plugin('b'))
      expect(given.dispense<string>('csi-node', 'ebs')).to.equal('client of b')
      await given.deregister(ref('b'))
      expect(given.dispense<string>('csi-node', 'ebs')).to.equal('client of a')
      expect(() => given.dispense('csi-node', 'nfs'))
        .to.throw('nfs')
        .with.property('code', 'ERR_PLUGIN_UNKNOWN')
      await given.register(plugin('a', { type: 'toString' }))
      for (const type of ['toString', 'csi-controller']) {
        expect(() => given.dispense(type, 'ebs'))
          .to.throw('dispenser')
          .with.property('code', 'ERR_PLUGIN_UNKNOWN')
      }
      await given.close()
    })
  })

  describe('closing', () => {
    it('saves and tells what waits, then completes every stream', async () => {
      const saving = gate()
      store.onSave = (batch, keep) => saving.opened.then(() => keep(batch))
      const ended: string[] = []
      registry.event$.subscribe({ complete: () => ended.push('event$') })
      registry.watch$.subscribe({ complete: () => ended.push('watch$') })
      registry.plugins$.subscribe({ complete: () => ended.push('plugins$') })
      registry.problem$.subscribe({ complete: () => ended.push('problem$') })
      const registered = ['a', 'b'].map((alloc) => registry.register(plugin(alloc)))
      const closed = registry.close()
      saving.open()
      await Promise.all(registered)
      await closed
      expect(told.map(short)).to.deep.equal(['registered a, current a', 'registered b, current b'])
      expect(ended).to.have.members(['event$', 'watch$', 'plugins$', 'problem$'])
      expect(savedKeys()).to.have.length(2)
    })

    it('deregisters nothing, and what is known can still be asked', async () => {
      await registry.register(plugin('a'))
      await registry.close()
      expect(told).to.have.length(1)
      expect(allocs(registry.list())).to.deep.equal(['a'])
      const seen: string[] = []
      registry.watch$.subscribe({ next: (event) => seen.push(short(event)), complete: () => seen.push('complete') })
      expect(seen).to.deep.equal(['registered a, current a', 'complete'])
    })

    it('rejects what comes later, and takes nothing from any source', async () => {
      const registration = await registry.register(plugin('a'))
      await Promise.all([registry.close(), registry.close()])
      await registry.close()
      const late = [
        registry.register(plugin('b')),
        registry.deregister(ref('a')),
        registry.apply(register('b')),
        registration.deregister(),
      ]
      for (const call of late) expect((await refusal(call)).code).to.equal('ERR_CLOSED')
      registry.next(register('b'))
      const source$ = new Subject<RegistryChange>()
      expect(registry.connect(source$).closed).to.equal(true)
      expect(source$.observed).to.equal(false)
      expect(savedKeys()).to.have.length(1)
    })

    it('gives up on a store that hangs, and refuses what it has not saved', async () => {
      const hung = await Registry.open({ store, closeTimeoutMs: 10 })
      store.onSave = () => new Promise(() => undefined)
      const problems: string[] = []
      hung.problem$.subscribe(({ code }) => problems.push(code))
      const waiting = ['a', 'b'].map((alloc) => refusal(hung.register(plugin(alloc))))
      await hung.close()
      for (const refused of await Promise.all(waiting)) expect(refused.code).to.equal('ERR_CLOSED')
      expect(problems).to.deep.equal(['ERR_CLOSED', 'ERR_CLOSED'])
      expect(hung.list()).to.deep.equal([])
    })

    it('does not listen to a store that answers afterwards', async () => {
      const hung = await Registry.open({ store, closeTimeoutMs: 1 })
      const saving = gate()
      store.onSave = () => saving.opened
      const seen: string[] = []
      hung.event$.subscribe((event) => seen.push(short(event)))
      const waiting = refusal(hung.register(plugin('a')))
      await hung.close()
      await waiting
      saving.open()
      await saving.opened
      expect([seen, hung.list()]).to.deep.equal([[], []])
    })

    it('leaves a store or a Keyv that was handed in to its owner', async () => {
      await registry.close()
      expect(store.closed).to.equal(false)
      const keyv = new Keyv()
      let disconnected = false
      keyv.on('disconnect', () => (disconnected = true))
      const onKeyv = await Registry.open({ store: keyv })
      await onKeyv.register(plugin('a'))
      await onKeyv.close()
      expect(disconnected).to.equal(false)
      expect(await keyv.get('plugin/csi-node/ebs/a')).to.deep.include({ order: 1 })
    })
  })
})
