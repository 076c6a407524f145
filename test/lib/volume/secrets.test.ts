import { inspect } from 'node:util'
import { expect } from 'chai'
import { PlugstreamError } from '../../../lib/errors.js'
import { ControllerCalls } from '../../../lib/volume/controller-calls.js'
import type { Operations } from '../../../lib/volume/operations.js'
import type { VolumePorts } from '../../../lib/volume/ports.js'
import { givenSecrets, secretsOf, type GiveSecrets } from '../../../lib/volume/secrets.js'
import { fakeHost, FakePlugin } from '../../fakes/fake-volumes.js'
import { Clock, enough, failureOf, listeners, settled } from './support.js'

const request = { secretsRef: 'login', rpc: 'NodeStageVolume', plugin: 'disk', volumeId: 'v1' }
const given = (give: GiveSecrets | undefined, signal = new AbortController().signal) =>
  givenSecrets(give, request, signal)

describe('the function that gives secrets', () => {
  it('is asked for the call they go with, and what it gives is copied', async () => {
    const own = { password: 'one' }
    const asked: unknown[] = []
    const { signal } = new AbortController()
    const secrets = await given((...about) => {
      asked.push(about)
      return own
    }, signal)
    own.password = 'two'
    expect(secrets).to.deep.equal({ password: 'one' })
    expect(asked).to.deep.equal([[request, { signal }]])
  })

  it('has none of a name where it gives nothing, and where there is no such function', async () => {
    const none = [undefined, () => undefined, () => null, async () => undefined] as (GiveSecrets | undefined)[]
    for (const give of none) {
      const { message, details } = await failureOf(given(give), 'ERR_OPTION_INVALID')
      expect(details).to.deep.equal({ field: 'secretsRef' })
      expect(message).to.include('"login"').and.include('NodeStageVolume')
    }
  })

  it('is refused what is no text, of which the field is named and the value not shown', async () => {
    const cases: readonly [unknown, field: string, shown: string][] = [
      [{ password: 4711 }, 'secrets.password', '"number"'],
      [{ user: 'u', password: undefined }, 'secrets.password', '"undefined"'],
      [{ password: { value: 'hunter2' } }, 'secrets.password', '"object"'],
      ['hunter2', 'secrets', '"string"'],
      [['hunter2'], 'secrets', 'a list'],
    ]
    for (const [secrets, field, shown] of cases) {
      const failure = await failureOf(
        given(() => secrets as Record<string, string>),
        'ERR_OPTION_INVALID',
      )
      expect(failure.details).to.deep.equal({ field })
      expect(failure.message)
        .to.match(/^secrets/)
        .and.include(shown)
      expect(inspect(failure, { showHidden: true, depth: null })).not.to.match(/hunter2|4711/)
    }
  })

  it('fails with an error of ours that has none of its words', async () => {
    const refused = Object.assign(new Error('hunter2 is refused'), { code: 'ECONNREFUSED' })
    const cases: readonly [GiveSecrets, string][] = [
      [() => { throw refused }, ' (Error ECONNREFUSED)'], // prettier-ignore
      [() => Promise.reject(new TypeError('no hunter2')), ' (TypeError)'],
      [() => Promise.reject(Object.assign(new Error('hunter2'), { code: 'hunter2', name: 'hunter2' })), ''],
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
      [() => Promise.reject('hunter2'), ''],
    ]
    for (const [give, which] of cases) {
      const failure = await failureOf(given(give), 'ERR_USAGE')
      expect(failure.message).to.equal(
        `secrets "login" for NodeStageVolume: the function that gives them has failed${which}`,
      )
      expect(failure.details).to.deep.equal({ secretsRef: 'login', rpc: 'NodeStageVolume' })
      expect(inspect(failure, { showHidden: true, depth: null })).not.to.include('hunter2')
    }
  })

  it('may fail with an error of ours, which stays what it is', async () => {
    const sealed = new PlugstreamError('ERR_USAGE', 'the vault is sealed', { retryable: true })
    expect(await failureOf(given(() => Promise.reject(sealed)))).to.equal(sealed)
  })
})

describe('secrets that are waited for', () => {
  it('are not asked for where none are needed', async () => {
    const ports = { secrets: () => expect.fail('it was asked') }
    expect(await secretsOf(ports, { ...request, secretsRef: undefined }, enough())).to.deep.equal({})
  })

  it('leave no listener, and what is being done as it was', async () => {
    const limits = enough()
    limits.doing = 'NodeGetInfo'
    const seen: unknown[] = []
    const secrets = async (): Promise<Record<string, string>> => {
      seen.push(limits.doing)
      return { password: 'p' }
    }
    expect(await secretsOf({ secrets }, request, limits)).to.deep.equal({ secrets: { password: 'p' } })
    expect(seen).to.deep.equal(['waiting for secrets "login" for NodeStageVolume'])
    expect(limits.doing).to.equal('NodeGetInfo')
    expect(listeners(limits.signal)).to.equal(0)
  })
})

const never = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))

/** Secrets that never come for the first that asks. */
function hanging() {
  const signals: AbortSignal[] = []
  const secrets: VolumePorts['secrets'] = (_request, signal) => {
    signals.push(signal)
    return signals.length === 1 ? new Promise(() => undefined) : Promise.resolve({ password: 'p' })
  }
  return { signals, secrets }
}
const openCalls = (ports: VolumePorts, operations: Operations): Promise<ControllerCalls> =>
  ControllerCalls.open(ports, operations, () => undefined, { event: () => undefined, problem: () => undefined })
const use = { plugin: 'disk', volumeId: 'v1', allocId: 'a', secretsRef: 'login' }

describe('secrets that never come', () => {
  it('are waited for as long as a mount has time, which says so; then the volume goes on', async () => {
    using clock = new Clock()
    const { signals, secrets } = hanging()
    const plugin = new FakePlugin()
    const { manager, close } = await fakeHost(plugin, new Map(), { secrets })
    const failing = failureOf(manager.mount(use, { timeoutMs: 1_000 }), 'ERR_TIMEOUT')
    const next = manager.mount(use)
    await clock.pass(1_000)
    expect((await failing).message).to.equal(
      'mounting volume "v1" of plugin "disk": not within 1000 ms (waiting for secrets "login" for NodePublishVolume)',
    )
    expect(signals[0]?.aborted).to.equal(true)
    await next
    expect(manager.list().map(({ claims }) => claims.map(({ phase }) => phase))).to.deep.equal([['mounted']])
    await close()
  })

  it('do not keep anything from closing', async () => {
    const { signals, secrets } = hanging()
    const { manager, close } = await fakeHost(new FakePlugin(), new Map(), { secrets })
    const failing = failureOf(manager.mount(use), 'ERR_CLOSED')
    await settled()
    await close()
    await failing
    expect(signals[0]?.aborted).to.equal(true)
  })

  it('are waited for as long as a call of the controller has time, and the next one goes on', async () => {
    using clock = new Clock()
    const { secrets } = hanging()
    const made: unknown[] = []
    const client = { deleteVolume: async (given: unknown) => void made.push(given) }
    const over = { secrets, client: () => client as unknown as ReturnType<VolumePorts['client']> }
    const { ports, operations, close } = await fakeHost(new FakePlugin(), new Map(), over)
    const calls = await openCalls(ports, operations)
    const wanted = { plugin: 'disk', volumeId: 'v1', secretsRef: 'login' }
    const failing = failureOf(calls.make('deleteVolume', wanted, { timeoutMs: 1_000 }), 'ERR_TIMEOUT')
    const next = calls.make('deleteVolume', wanted)
    await clock.pass(1_000)
    expect((await failing).message).to.include('(waiting for secrets "login" for DeleteVolume)')
    await next
    expect(made).to.deep.equal([{ volumeId: 'v1', secrets: { password: 'p' } }])
    calls.close()
    await close()
  })
})

describe('a plugin that is waited for', () => {
  /** A mount that waits for one half of its plugin, which is registered or not. */
  const waiting = async (half: string, isRegistered: boolean): Promise<string> => {
    using clock = new Clock()
    const plugin = new FakePlugin()
    const { ready } = (await fakeHost(plugin)).ports
    const { manager, close } = await fakeHost(plugin, new Map(), {
      isRegistered: (type) => type !== half || isRegistered,
      ready: (type, name, signal) => (type === half ? never(signal) : ready(type, name, signal)),
    })
    const failing = failureOf(manager.mount({ ...use, secretsRef: 'login' }, { timeoutMs: 1_000 }), 'ERR_TIMEOUT')
    await clock.pass(1_000)
    const { message } = await failing
    await close()
    return message
  }

  it('is named where time runs out, and said to be not registered where it is not', async () => {
    expect(await waiting('csi-node', true)).to.include('(waiting for its plugin)')
    expect(await waiting('csi-node', false)).to.include('(waiting for its plugin, which is not registered)')
    expect(await waiting('csi-controller', true)).to.include('(waiting for the controller plugin)')
  })

  it('is said to be not registered where a call of its controller is what waits', async () => {
    using clock = new Clock()
    const over: Partial<VolumePorts> = { isRegistered: () => false, ready: (_type, _name, signal) => never(signal) }
    const { ports, operations, close } = await fakeHost(new FakePlugin(), new Map(), over)
    const calls = await openCalls(ports, operations)
    const failing = failureOf(calls.make('deleteVolume', { plugin: 'disk', volumeId: 'v1' }, { timeoutMs: 1_000 }))
    await clock.pass(1_000)
    expect((await failing).message).to.include('(waiting for the controller plugin, which is not registered)')
    calls.close()
    await close()
  })
})
