import { expect } from 'chai'
import type { PluginChannel, PluginGone, PluginKind } from '../../../lib/plugin/kind.js'
import type { PluginInfo } from '../../../lib/plugin/plugin.js'
import { CallHolds } from '../../../lib/plugin/call-holds.js'
import { nameOf, PluginClients, type Reach } from '../../../lib/plugin/plugin-clients.js'

interface ToyClient {
  pick: () => PluginChannel
  gone: PluginGone
  closing: AbortSignal
  held: () => Promise<void> | undefined
}

const kind = {
  types: ['toy'],
  client: (pick, gone, closing, held) => ({ pick, gone, closing, held }),
} as Partial<PluginKind> as PluginKind
const channel = (): PluginChannel => ({}) as PluginChannel
const instance = (allocId: string) => ({ type: 'toy', name: 'train', allocId }) as PluginInfo
const reached = (reach: Partial<Reach>): Reach => ({
  healthy: true,
  description: 'ready',
  channel: undefined,
  gone: undefined,
  ...reach,
})

/** A client of instances, newest first, that are reached so; `undefined`: nothing is known of one. */
function clientOf(reaches: Record<string, Reach | undefined>): ToyClient {
  const clients = new PluginClients([kind], ({ allocId }) => reaches[allocId])
  return clients.of('toy', 'toy plugin "train"', () => Object.keys(reaches).map(instance)) as ToyClient
}

describe('PluginClients', () => {
  it('picks the newest healthy instance, and the newest where none is', () => {
    const [a, b] = [channel(), channel()]
    const sick = { healthy: false }
    const pick = (young: Partial<Reach> | undefined, old: Partial<Reach>) =>
      clientOf({
        young: young && reached({ channel: a, ...young }),
        old: reached({ channel: b, ...old }),
      }).pick()
    expect(pick({}, {})).to.equal(a)
    expect(pick(sick, {})).to.equal(b)
    expect(pick(undefined, {})).to.equal(b)
    expect(pick(sick, sick)).to.equal(a)
  })

  it('says of what cannot be called why', () => {
    const code = (code: string) => (thrown: unknown) => expect(thrown).to.include({ code })
    for (const [reaches, failure, words] of [
      [{}, 'ERR_PLUGIN_UNKNOWN', 'toy plugin "train" is not registered'],
      [{ a: undefined }, 'ERR_PLUGIN_NOT_READY', 'nothing is known of it yet'],
      [{ a: reached({ description: 'the task exited with code 1' }) }, 'ERR_PLUGIN_NOT_READY', 'exited with code 1'],
    ] as const)
      expect(() => clientOf(reaches).pick(), words)
        .to.throw(words)
        .that.satisfies(code(failure))
  })

  it('tells when the process behind a channel that was picked is gone, whoever is picked now', async () => {
    const [a, b] = [channel(), channel()]
    const signals: AbortSignal[] = []
    const gone = async (signal: AbortSignal): Promise<string> => (signals.push(signal), 'a is gone')
    const reaches: Record<string, Reach> = { young: reached({ channel: a, gone }), old: reached({ channel: b }) }
    const client = clientOf(reaches)
    client.pick()
    reaches['young'] = reached({ healthy: false, description: 'the task was ended by SIGKILL' })
    expect(client.pick()).to.equal(b)
    const { signal } = new AbortController()
    expect(await client.gone(a, signal)).to.equal('a is gone')
    expect(signals).to.deep.equal([signal])
  })

  it('tells its clients that it was closed', () => {
    const clients = new PluginClients([kind], () => undefined)
    const { closing } = clients.of('toy', 'toy plugin "train"', () => []) as ToyClient
    expect(closing.aborted).to.equal(false)
    clients.close()
    expect(closing.aborted).to.equal(true)
  })

  it('holds back the calls of a plugin that is held, and of no other', async () => {
    const holds = new CallHolds()
    const clients = new PluginClients([kind], () => undefined, holds)
    const [train, car] = ['train', 'car'].map((name) => {
      const plugin = { type: 'toy', name }
      return { plugin, client: clients.of('toy', nameOf(plugin), () => []) as ToyClient }
    }) as [{ plugin: PluginInfo; client: ToyClient }, { plugin: PluginInfo; client: ToyClient }]
    const letGo = holds.hold(nameOf(train.plugin))
    const over = train.client.held()
    expect(over).to.be.instanceOf(Promise)
    expect(clients.isHeld(train.plugin)).to.equal(true)
    expect(car.client.held()).to.equal(undefined)
    expect(clients.isHeld(car.plugin)).to.equal(false)
    letGo()
    await over
    expect(train.client.held()).to.equal(undefined)
  })

  it('never tells of one that nobody can tell of, or that was not picked', async () => {
    const a = channel()
    const client = clientOf({ a: reached({ channel: a }) })
    client.pick()
    const { signal } = new AbortController()
    for (const one of [a, channel()])
      expect(await Promise.race([client.gone(one, signal), Promise.resolve('not told')])).to.equal('not told')
  })
})
