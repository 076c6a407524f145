import { expect } from 'chai'
import { merge, type Observable } from 'rxjs'
import { scriptedPlugin } from '../testing/scripted-plugin.js'
import { aStory, because, isHealthy, kindsOf, pluginTask, type Story } from './support.js'

const first = { version: '1.0.0', nodeId: 'node-of-1.0.0', maxVolumes: 1 }
const second = { version: '2.0.0', nodeId: 'node-of-2.0.0', maxVolumes: 2 }

/** What a stream tells first, in the call itself. */
function present<T>(source$: Observable<T>): T | undefined {
  let value: T | undefined
  source$.subscribe((one) => (value ??= one)).unsubscribe()
  return value
}

/** Looks at everything whenever anything is told, and says where what is healthy is not of one piece. */
function mixtures({ host }: Story): string[] {
  const found: string[] = []
  const look = (): void => {
    const health = present(host.health$)
    const fingerprint = present(host.fingerprint$)
    const [instance] = present(host.node$)?.instances ?? []
    const version = health && host.registry.get(health.plugin)?.version
    const parts = [
      { what: 'health', healthy: health?.healthy, versions: [health?.plugin.version, version] },
      {
        what: 'fingerprint',
        healthy: fingerprint?.healthy,
        versions: [fingerprint?.plugin.version, fingerprint?.node?.id.slice('node-of-'.length), version],
      },
      {
        what: 'node, by health',
        healthy: instance?.health.healthy && instance.fingerprint?.healthy,
        versions: [instance?.plugin.version, instance?.fingerprint?.node?.id.slice('node-of-'.length)],
      },
      {
        what: 'node, by fingerprint',
        healthy: instance?.fingerprint?.healthy,
        versions: [
          instance?.plugin.version,
          instance?.fingerprint?.plugin.version,
          instance?.fingerprint?.node?.id.slice('node-of-'.length),
        ],
      },
    ]
    for (const { what, healthy, versions } of parts)
      if (healthy && new Set(versions).size > 1) found.push(`${what}: ${versions.join(', ')}`)
  }
  merge(host.registry.event$, host.health$, host.fingerprint$, host.node$).subscribe(look)
  return found
}

describe('a plugin that restarts by itself as another version', () => {
  for (const how of ['its process dies', 'its socket is taken over'] as const) {
    it(
      `is updated and read again, and nothing healthy is ever of both: ${how}`,
      aStory({}, async (story) => {
        const { registry, health, fingerprints, restarts, notes, nodes, spawn, keep, host } = story
        const found = mixtures(story)
        const plugin = await spawn(pluginTask(), first)
        expect(await fingerprints.until(isHealthy)).to.have.nested.property('node.id', first.nodeId)
        health.skip()
        fingerprints.skip()
        nodes.skip()

        if (how === 'its process dies') {
          plugin.kill('SIGKILL')
          await health.until(because('socket-refused'))
          keep(await scriptedPlugin({ socketPath: plugin.socketPath, script: second }))
        } else {
          await plugin.rebind(second)
        }
        await health.until(because('socket-replaced'))
        const back = await health.until(isHealthy)
        expect(back.plugin.version).to.equal('2.0.0')
        const fingerprint = await fingerprints.until(isHealthy)
        expect(fingerprint).to.have.nested.property('plugin.version', '2.0.0')
        expect(fingerprint).to.deep.include({ healthDescription: 'healthy' })
        expect(fingerprint.node).to.deep.include({ id: second.nodeId, maxVolumes: 2 })
        // Until then it was unhealthy, with what was last known.
        const meanwhile = fingerprints.fresh.slice(0, -1)
        expect(meanwhile).to.not.be.empty
        for (const { healthy, node } of meanwhile) {
          expect(healthy).to.equal(false)
          expect(node?.id).to.equal(first.nodeId)
        }
        expect(kindsOf(registry.all)).to.deep.equal(['registered', 'updated'])
        expect(registry.all[1]?.plugin.registeredAt).to.equal(registry.all[0]?.plugin.registeredAt)
        await nodes.until(({ instances }) => instances[0]?.fingerprint?.node?.id === second.nodeId)
        await notes.until(({ kind }) => kind === 'plugin-healthy')
        expect(restarts.all).to.deep.equal([])
        expect(found).to.deep.equal([])
        expect(host.registry.list()).to.have.length(1)
      }),
    )
  }
})
