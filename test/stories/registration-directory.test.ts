import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { NEVER } from 'rxjs'
import type { Timing } from '../../lib/defaults.js'
import { openHost } from '../../streams/host.js'
import { Registrar, type Announced, type RegistrarQuirks } from '../fakes/registrar.js'
import { HostpathDriver } from '../interop/hostpath-driver.js'
import { mountsBelow } from '../interop/mounts.js'
import { staleSocket } from '../support/sockets.js'
import { scriptedPlugin, type ScriptedPlugin } from '../testing/scripted-plugin.js'
import { inDirectory, isHealthy, kindsOf, ofAlloc, reasonsOf, shortTiming, withHost, type Story } from './support.js'
import { describeWithMounts, inMountDirectory } from './volumes-support.js'

const name = 'disk.example.com'

/** A host that watches a directory for what registrars put there. */
interface Door extends Story {
  readonly directory: string
  /** Where drivers are. */
  socketOf(driver: string): string
  driver(driver?: string, providerName?: string): Promise<ScriptedPlugin>
  registrar(file?: string, announced?: Partial<Announced>, quirks?: RegistrarQuirks): Promise<Registrar>
  pathOf(file?: string): string
}

function aDoor(tell: (door: Door) => Promise<void>): () => Promise<void> {
  return () => inDirectory((root) => withDoor(root, tell))
}

function withDoor(root: string, tell: (door: Door) => Promise<void>, timing: Partial<Timing> = {}): Promise<void> {
  const directory = join(root, 'r')
  const init = { task$: NEVER, registrationDirectory: directory, timing: { ...shortTiming, ...timing } }
  return withHost(join(root, 'host'), init, async (story) => {
    const socketOf = (driver: string): string => join(root, `${driver}.sock`)
    const pathOf = (file = `${name}-reg.sock`): string => join(directory, file)
    await tell({
      ...story,
      directory,
      socketOf,
      pathOf,
      driver: async (driver = 'a', providerName = name) =>
        story.keep(await scriptedPlugin({ socketPath: socketOf(driver), script: { name: providerName } })),
      registrar: async (file, announced, quirks) => {
        const said = { name, endpoint: socketOf('a'), ...announced }
        const registrar = await Registrar.start(pathOf(file), said, quirks)
        story.keep({ close: () => registrar.kill() })
        return registrar
      },
    })
  })
}

describe('a directory for registration sockets', () => {
  it(
    'A: registers a driver as soon as its registrar is there, and tells the registrar when that is saved',
    aDoor(async ({ host, driver, registrar, pathOf, socketOf, registry, fingerprints }) => {
      await driver()
      const first = await registrar()
      expect(await first.told()).to.deep.equal({ registered: true })
      const [plugin] = host.registry.instances('csi-node', name)
      expect(plugin).to.deep.include({
        allocId: pathOf(),
        provider: name,
        connection: { socketPath: socketOf('a') },
        options: { registrationSocket: pathOf() },
      })
      await fingerprints.until(isHealthy)
      expect(host.registry.list('csi-controller')).to.deep.equal([])
      expect(kindsOf(registry.all)).to.deep.equal(['registered'])
    }),
  )

  it(
    'B: a driver that is dead is unhealthy at once, whatever its registrar says, and healthy when it is back',
    aDoor(async ({ driver, registrar, health, registry }) => {
      const running = await driver()
      await (await registrar()).told()
      await health.until(isHealthy)
      health.skip()
      await running.close()
      expect(await health.until((event) => !event.healthy)).to.deep.include({ reason: 'socket-missing', final: false })
      await driver()
      await health.until(isHealthy)
      expect(kindsOf(registry.all)).to.deep.equal(['registered'])
    }),
  )

  it(
    'C: a registrar that ends takes its driver off',
    aDoor(async ({ driver, registrar, health, registry }) => {
      await driver()
      const first = await registrar()
      await first.told()
      await first.stop()
      const { plugin, reason } = await registry.until(({ kind }) => kind === 'deregistered')
      expect([plugin.name, reason]).to.deep.equal([name, 'its registration socket is gone'])
      const [last] = health.all.slice(-1)
      expect(last).to.deep.include({ reason: 'deregistered', description: reason, final: true })
    }),
  )

  it(
    'E: a driver that is not there is not registered, and its registrar hears why',
    aDoor(async ({ registrar, registry, problems, socketOf }) => {
      const verdict = await (await registrar()).told()
      const why = `the driver that was announced as "${name}" at ${socketOf('a')} does not answer: there is no socket`
      expect(verdict).to.deep.equal({ registered: false, error: why })
      expect(await problems.until(({ message }) => message === why)).to.include({ code: 'ERR_PLUGIN_NOT_READY' })
      expect(registry.all).to.deep.equal([])
    }),
  )

  it(
    'F: a driver that comes late is registered when it comes, also where its registrar has given up',
    aDoor(async ({ driver, registrar, registry, health }) => {
      await (await registrar()).told() // and has ended
      await driver()
      await registry.until(({ kind }) => kind === 'registered')
      await health.until(isHealthy)
      const next = await registrar()
      expect(await next.told()).to.deep.equal({ registered: true })
      expect(kindsOf(registry.all)).to.deep.equal(['registered'])
    }),
  )

  it(
    'F: a registrar that stays hears of it when its driver has come',
    aDoor(async ({ driver, registrar }) => {
      const patient = await registrar(undefined, {}, { stays: true })
      await patient.told()
      await driver()
      expect(await patient.told(2)).to.deep.equal({ registered: true })
    }),
  )

  it(
    'G: a driver is registered again when its registrar is back',
    aDoor(async ({ driver, registrar, registry, health }) => {
      await driver()
      const first = await registrar()
      await first.told()
      await first.stop()
      await registry.until(({ kind }) => kind === 'deregistered')
      health.skip()
      expect(await (await registrar()).told()).to.deep.equal({ registered: true })
      await health.until(isHealthy)
      expect(kindsOf(registry.all)).to.deep.equal(['registered', 'deregistered', 'registered'])
    }),
  )

  it(
    'H: a registrar that is killed and back leaves no gap',
    aDoor(async ({ driver, registrar, registry, health }) => {
      await driver()
      const first = await registrar()
      await first.told()
      await health.until(isHealthy)
      for (let again = 0; again < 3; again++) {
        await (await registrar()).told() // over the socket of one that is still there
      }
      await first.kill()
      const second = await registrar()
      expect(await second.told()).to.deep.equal({ registered: true })
      expect(kindsOf(registry.all)).to.deep.equal(['registered'])
      expect(reasonsOf(health.all)).to.deep.equal(['ready'])
    }),
  )

  it(
    'H: the next registrar may announce another driver in the place of the first, or the same one elsewhere',
    aDoor(async ({ host, driver, registrar, registry, socketOf }) => {
      await driver('a')
      await driver('b')
      await driver('c', 'other.example.com')
      await (await registrar()).told()
      await (await registrar(undefined, { endpoint: socketOf('b') })).told()
      expect(host.registry.instances('csi-node', name).map(({ connection }) => connection.socketPath)).to.deep.equal([
        socketOf('b'),
      ])
      await (await registrar(undefined, { endpoint: socketOf('c'), name: 'other.example.com' })).told()
      expect(registry.all.map(({ kind, plugin }) => `${kind} ${plugin.name}`)).to.deep.equal([
        `registered ${name}`,
        `updated ${name}`,
        `deregistered ${name}`,
        'registered other.example.com',
      ])
    }),
  )

  it(
    'I: of two drivers of one name the first has it, and the registrar of the second hears who that is',
    aDoor(async ({ host, directory, driver, registrar, registry, pathOf, socketOf }) => {
      await driver('a')
      await driver('b')
      await (await registrar()).told()
      mkdirSync(join(directory, 'b'))
      const second = await registrar('b/reg.sock', { endpoint: socketOf('b') })
      const error = `the name "${name}" is taken by the driver that was announced at ${pathOf()}`
      expect(await second.told()).to.deep.equal({ registered: false, error })
      expect(host.registry.instances('csi-node', name).map(({ allocId }) => allocId)).to.deep.equal([pathOf()])
      expect(kindsOf(registry.all)).to.deep.equal(['registered'])
    }),
  )

  it(
    'J: the second has the name when the first leaves, although its registrar has ended',
    aDoor(async ({ host, directory, driver, registrar, registry, pathOf, socketOf }) => {
      await driver('a')
      await driver('b')
      const first = await registrar()
      await first.told()
      mkdirSync(join(directory, 'b'))
      await (await registrar('b/reg.sock', { endpoint: socketOf('b') })).told()
      await first.stop()
      await registry.until(({ kind, plugin }) => kind === 'registered' && plugin.allocId === pathOf('b/reg.sock'))
      expect(kindsOf(registry.all)).to.deep.equal(['registered', 'deregistered', 'registered'])
      expect(host.registry.list('csi-node').map(({ connection }) => connection.socketPath)).to.deep.equal([
        socketOf('b'),
      ])
    }),
  )

  it(
    'J: the second has the name when the driver of the first is dead, and the first when that of the second is',
    aDoor(async ({ driver, registrar, registry, health, directory, pathOf, socketOf }) => {
      const one = await driver('a')
      const two = await driver('b')
      await (await registrar()).told()
      mkdirSync(join(directory, 'b'))
      await (await registrar('b/reg.sock', { endpoint: socketOf('b') })).told()
      await one.close()
      await registry.until(({ kind, plugin }) => kind === 'deregistered' && plugin.allocId === pathOf())
      await driver('a')
      await health.until(ofAlloc(pathOf('b/reg.sock')))
      await two.close()
      await registry.until(({ kind, plugin }) => kind === 'deregistered' && plugin.allocId === pathOf('b/reg.sock'))
      expect(registry.all.map(({ kind, current }) => `${kind} ${current?.connection.socketPath}`)).to.deep.equal([
        `registered ${socketOf('a')}`,
        `registered ${socketOf('b')}`,
        `deregistered ${socketOf('b')}`,
        `registered ${socketOf('a')}`,
        `deregistered ${socketOf('a')}`,
      ])
    }),
  )

  it(
    '1 and 2: a socket that is moved in is registered, and deregistered when it is moved away',
    aDoor(async ({ driver, registrar, registry, pathOf, socketOf }) => {
      await driver()
      const moved = await registrar('../elsewhere.sock')
      renameSync(moved.socketPath, pathOf())
      await moved.told()
      renameSync(pathOf(), socketOf('away'))
      await registry.until(({ kind }) => kind === 'deregistered')
    }),
  )

  it(
    '3 and 4: a name with a dot before it is left alone, until it is renamed',
    aDoor(async ({ driver, registrar, registry, pathOf }) => {
      await driver('a')
      await driver('b', 'other.example.com')
      const hidden = await registrar('.hidden.sock')
      await (await registrar(undefined, { name: 'other.example.com', endpoint: pathOf('../b.sock') })).told()
      expect([hidden.asked, registry.all.length]).to.deep.equal([0, 1])
      renameSync(hidden.socketPath, pathOf('seen.sock'))
      expect(await hidden.told()).to.deep.equal({ registered: true })
    }),
  )

  it(
    '5: a link to a socket is as good as the socket',
    aDoor(async ({ driver, registrar, registry, pathOf }) => {
      await driver()
      const elsewhere = await registrar('../elsewhere.sock')
      symlinkSync(elsewhere.socketPath, pathOf())
      await elsewhere.told()
      rmSync(elsewhere.socketPath)
      await registry.until(({ kind }) => kind === 'deregistered')
    }),
  )

  it(
    '6: a file that is no socket is left alone',
    aDoor(async ({ driver, registrar, problems, pathOf }) => {
      writeFileSync(pathOf('z-reg.sock'), '')
      await driver()
      await (await registrar()).told()
      expect(problems.all).to.deep.equal([])
    }),
  )

  it(
    '7: a directory with a socket in it is moved in, and away',
    aDoor(async ({ driver, registrar, registry, directory, socketOf }) => {
      await driver()
      mkdirSync(socketOf('d'))
      const moved = await registrar('../d.sock/reg.sock')
      renameSync(socketOf('d'), join(directory, 'd'))
      await moved.told()
      renameSync(join(directory, 'd'), socketOf('d'))
      await registry.until(({ kind }) => kind === 'deregistered')
    }),
  )

  it(
    '8: the directory is removed and made again: what was there is gone, and what comes is registered',
    aDoor(async ({ driver, registrar, registry, directory }) => {
      await driver()
      for (let again = 0; again < 2; again++) {
        registry.skip()
        await (await registrar()).told()
        rmSync(directory, { recursive: true })
        await registry.until(({ kind }) => kind === 'deregistered')
        mkdirSync(directory)
      }
    }),
  )

  it('9: the next host finds what is there as it was, and that it is gone what is gone', () =>
    inDirectory(async (root) => {
      const drivers: ScriptedPlugin[] = []
      const registrars: Registrar[] = []
      const names = ['a.example.com', 'b.example.com', 'c.example.com']
      try {
        mkdirSync(join(root, 'r'))
        for (const name of names) {
          const endpoint = join(root, `${name}.sock`)
          drivers.push(await scriptedPlugin({ socketPath: endpoint, script: { name } }))
          registrars.push(await Registrar.start(join(root, 'r', name), { name, endpoint }))
        }
        let registered: string[] = []
        await withDoor(root, async ({ registry }) => {
          for (const registrar of registrars) expect(await registrar.told()).to.deep.equal({ registered: true })
          registered = registry.all.map(({ plugin }) => plugin.name)
          expect([...registered].sort()).to.deep.equal(names)
        })
        await registrars[0]?.stop()
        await registrars[1]?.kill()
        await withDoor(root, async ({ registry, health, host }) => {
          await registry.until(({ kind }) => kind === 'deregistered')
          expect(await registrars[2]?.told(2)).to.deep.equal({ registered: true })
          for (const name of names.slice(1)) await health.until((event) => event.plugin.name === name && event.healthy)
          expect(registry.all.map(({ kind, restored, plugin }) => [kind, restored, plugin.name])).to.deep.equal([
            ...registered.map((name) => ['registered', true, name]),
            ['deregistered', false, names[0]],
          ])
          expect(host.registry.list('csi-node')).to.have.length(2)
        })
      } finally {
        for (const one of registrars) await one.kill()
        for (const one of drivers) await one.close()
      }
    }))

  it(
    '10: a registrar that does not answer keeps nobody waiting, and is heard when it does',
    aDoor(async ({ driver, registrar, socketOf }) => {
      await driver('a')
      await driver('b', 'other.example.com')
      let wake = (): void => undefined
      const stopped = await registrar('stopped.sock', {}, { until: new Promise<void>((resolve) => (wake = resolve)) })
      await (await registrar(undefined, { name: 'other.example.com', endpoint: socketOf('b') })).told()
      expect(stopped.verdicts).to.deep.equal([])
      wake()
      expect(await stopped.told()).to.deep.equal({ registered: true })
    }),
  )

  it(
    'stale sockets, and those of something else, are told once and keep nobody waiting',
    aDoor(async ({ driver, registrar, problems, pathOf }) => {
      await driver()
      const stale = Array.from({ length: 20 }, (_, at) => pathOf(`${at}.sock`))
      for (const path of stale) await staleSocket(path)
      const other = await registrar('other.sock', {}, { isOther: true })
      await (await registrar()).told()
      for (const path of [...stale, other.socketPath]) await problems.until(({ message }) => message.includes(path))
      expect(problems.all).to.have.length(stale.length + 1)
      expect(new Set(problems.all.map(({ code }) => code))).to.deep.equal(new Set(['ERR_SOCKET']))
    }),
  )

  it('what was confirmed since the host was opened is not lost, however long its driver is away', () =>
    inDirectory(async (root) => {
      const endpoint = join(root, 'a.sock')
      mkdirSync(join(root, 'r'))
      const byHand = await scriptedPlugin({ socketPath: join(root, 'x.sock') })
      const driver = await scriptedPlugin({ socketPath: endpoint, script: { name } })
      const registrar = await Registrar.start(join(root, 'r', 'a'), { name, endpoint })
      try {
        await withDoor(root, async ({ host }) => {
          await registrar.told()
          const connection = { socketPath: byHand.socketPath }
          await host.registry.register({ type: 'csi-node', name: 'by-hand', allocId: 'x', connection })
        })
        // Long enough for both to be found alive on a busy machine.
        const timing = { restoreGraceMs: 2_000 }
        const later = async ({ health, registry }: Door): Promise<void> => {
          await registrar.told(2)
          for (const one of [name, 'by-hand']) await health.until((event) => event.plugin.name === one && event.healthy)
          // In this order: when the second is lost, the first would have been.
          await driver.close()
          await health.until((event) => event.plugin.name === name && !event.healthy)
          await byHand.close()
          const lost = await registry.until(({ kind }) => kind === 'deregistered')
          expect([lost.plugin.name, lost.reason]).to.deep.equal(['by-hand', 'lost'])
        }
        await withDoor(root, later, timing)
      } finally {
        await registrar.kill()
        for (const one of [byHand, driver]) await one.close()
      }
    }))

  it(
    'of a host that cannot have it is refused',
    aDoor(async ({ stateDir, pathOf }) => {
      writeFileSync(pathOf('../file'), '')
      const opening = openHost({ stateDir: `${stateDir}-2`, task$: NEVER, registrationDirectory: pathOf('../file') })
      const failure: unknown = await opening.catch((thrown: unknown) => thrown)
      expect(failure).to.deep.include({ code: 'ERR_OPTION_INVALID', details: { field: 'registrationDirectory' } })
    }),
  )
})

describeWithMounts('volumes of a driver that was announced', () => {
  it('are made and used with the controller that is registered by hand beside it', () =>
    inMountDirectory(async (root) => {
      const options = { name, 'node-id': 'n1', 'state-dir': join(root, 'volumes') }
      const endpoint = join(root, 'a.sock')
      await using _driver = await HostpathDriver.start(endpoint, options)
      await withDoor(root, async ({ host, registrar }) => {
        await (await registrar()).told()
        const controller = { type: 'csi-controller', name, allocId: 'controller', connection: { socketPath: endpoint } }
        await host.registry.register(controller)
        const access = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' } as const
        const { volume } = await host.volumes.create({ plugin: name, name: 'data', volumeCapabilities: [access] })
        const { volumeId, volumeContext } = volume
        {
          await using data = await host.volumes.mount({ plugin: name, volumeId, volumeContext, allocId: 'web', access })
          writeFileSync(join(data.path, 'hello'), 'world')
          expect(mountsBelow(join(root, 'host')).map(({ path }) => path)).to.include(data.path)
        }
        await host.volumes.delete({ plugin: name, volumeId })
      })
    }))
})
