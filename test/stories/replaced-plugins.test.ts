import { expect } from 'chai'
import type { CsiClient } from '../../lib/csi/client.js'
import { outcomeOf } from '../../lib/csi/status.js'
import type { PlugstreamError } from '../../lib/errors.js'
import type { PluginCall } from '../testing/call-log.js'
import type { PluginScript } from '../testing/plugin-script.js'
import { scriptedPlugin, type ScriptedPlugin } from '../testing/scripted-plugin.js'
import type { SpawnedPlugin } from '../testing/spawn-scripted-plugin.js'
import { aStory, isHealthy, ofAlloc, pluginTask, type Story } from './support.js'

const csiPlugin = { id: 'ebs', type: 'controller' } as const
const old = pluginTask({ allocId: 'old', csiPlugin })
const young = pluginTask({ allocId: 'young', csiPlugin })

const capability = { kind: 'mount', accessMode: 'SINGLE_NODE_WRITER' } as const
const volume = { name: 'vol-1', volumeCapabilities: [capability] }
const hangs = [{ fault: 'hang' }] as const
const unavailable = { status: 'UNAVAILABLE' } as const
const oldScript: PluginScript = { replies: { CreateVolume: hangs, ValidateVolumeCapabilities: hangs } }
const youngScript: PluginScript = { replies: { ValidateVolumeCapabilities: [unavailable, unavailable] } }

const creations = ({ calls }: ScriptedPlugin): PluginCall[] => calls.filter(({ rpc }) => rpc === 'CreateVolume')
const failureOf = (call: Promise<unknown>): Promise<PlugstreamError> =>
  call.then(
    () => expect.fail('the call succeeded'),
    (failure: unknown) => failure as PlugstreamError,
  )

/** How the two are started. */
interface Plugins<P> {
  first: () => Promise<P>
  second: () => Promise<ScriptedPlugin>
}

/**
 * A volume is being created by an old instance when the connection is lost, and goes on to be; a young instance of the same plugin
 * is there to be called. Resolves when a call that may run twice has gone over to it meanwhile, after longer pauses than that of the
 * creation.
 */
async function lostBeside<P extends ScriptedPlugin>(
  { host, health }: Story,
  plugins: Plugins<P>,
  options: { signal?: AbortSignal; timeoutMs?: number } = {},
): Promise<{ created: Promise<unknown>; first: P; second: ScriptedPlugin }> {
  const first = await plugins.first()
  await health.until((event) => ofAlloc('old')(event) && isHealthy(event))
  const client = host.client<CsiClient>('csi-controller', 'ebs')
  const created = client.createVolume(volume, options)
  created.catch(() => undefined) // looked at later
  const request = { volumeId: 'v', volumeCapabilities: [capability] }
  const validated = client.validateVolumeCapabilities(request, { timeoutMs: 60_000 })
  await first.waitForCall('CreateVolume')
  await first.waitForCall('ValidateVolumeCapabilities')

  const second = await plugins.second()
  await health.until((event) => ofAlloc('young')(event) && isHealthy(event))
  await first.disconnect()
  await validated
  expect(creations(second)).to.deep.equal([])
  return { created, first, second }
}

const asTasks = ({ start }: Story): Plugins<ScriptedPlugin> => ({
  first: () => start(old, oldScript),
  second: () => start(young, youngScript),
})
/** The old one can be killed. */
const asProcesses = ({ spawn, start }: Story): Plugins<SpawnedPlugin> => ({
  first: () => spawn(old, oldScript),
  second: () => start(young, youngScript),
})

describe('a call whose outcome is unknown', () => {
  it(
    'goes on with the next run of its task, which begins after the one before it',
    aStory({}, async ({ host, health, spawn, exited }) => {
      const first = await spawn(old, oldScript)
      await health.until(isHealthy)
      const created = host.client<CsiClient>('csi-controller', 'ebs').createVolume(volume)
      await first.waitForCall('CreateVolume')
      first.kill('SIGKILL')
      await first.exit
      const goneAt = Date.now()
      exited(old, true)
      const second = await spawn(old)
      expect(await created).to.have.nested.property('volume.volumeId', 'vol-1')
      expect(creations(first)).to.have.length(1)
      expect(creations(second)).to.have.length(1)
      expect(creations(second)[0]?.at).to.be.at.least(goneAt)
    }),
  )

  for (const [how, end] of [
    ['has exited', ({ exited }) => exited(old, true)],
    ['has exited for good', ({ exited }) => exited(old, false)],
    ['was stopped', ({ tell }) => tell('stopped', old)],
    ['runs again', ({ tell }) => tell('started', old)],
  ] as const satisfies [string, (story: Story) => void][])
    it(
      `goes on with another instance once the task of its own ${how}, and not before`,
      aStory({}, async (story) => {
        const { created, first, second } = await lostBeside(story, asProcesses(story))
        first.kill('SIGKILL')
        await first.exit
        const goneAt = Date.now()
        end(story)
        await created
        expect(creations(first)).to.have.length(1)
        expect(creations(second)).to.have.length(1)
        expect(creations(second)[0]?.at).to.be.at.least(goneAt)
      }),
    )

  it(
    'goes on after its own task was told to stop only when it has',
    aStory({}, async (story) => {
      const { registry, tell } = story
      const { created, first, second } = await lostBeside(story, asTasks(story))
      tell('stopping', old)
      await registry.until((event) => ofAlloc('old')(event) && event.kind === 'deregistered')
      await story.host.client<CsiClient>('csi-controller', 'ebs').getPluginInfo()
      expect(creations(second)).to.deep.equal([])
      await first.close()
      tell('stopped', old)
      await created
      expect(creations(second)).to.have.length(1)
    }),
  )

  it(
    'goes on at once where it is lost after its task was told to have stopped',
    aStory({}, async ({ host, health, start, tell }) => {
      const first = await start(old, oldScript)
      await health.until(isHealthy)
      const created = host.client<CsiClient>('csi-controller', 'ebs').createVolume(volume)
      await first.waitForCall('CreateVolume')
      const second = await start(young)
      await health.until((event) => ofAlloc('young')(event) && isHealthy(event))
      tell('stopped', old)
      await first.close()
      await created
      expect(creations(second)).to.have.length(1)
    }),
  )

  it(
    'is given up as soon as its caller does, and may have been done',
    aStory({}, async (story) => {
      const caller = new AbortController()
      const { created, second } = await lostBeside(story, asTasks(story), { signal: caller.signal })
      caller.abort()
      const failure = await failureOf(created)
      expect(failure.code).to.equal('ERR_ABORTED')
      expect(outcomeOf(failure)).to.equal('unknown')
      expect(creations(second)).to.deep.equal([])
    }),
  )

  it(
    'ends with the host',
    aStory({}, async (story) => {
      const { created, second } = await lostBeside(story, asTasks(story))
      await story.host.close()
      const failure = await failureOf(created)
      expect(failure.code).to.equal('ERR_CLOSED')
      expect(outcomeOf(failure)).to.equal('unknown')
      expect(creations(second)).to.deep.equal([])
    }),
  )

  for (const [what, tell] of [
    ['nothing was told of its task', () => undefined],
    ['the start of its task was not told, but an end: it may be that of another', ({ exited }) => exited(old, true)],
  ] as const satisfies [string, (story: Story) => void][])
    it(
      `is not made elsewhere before its deadline where ${what}`,
      aStory({}, async (story) => {
        const { host, keep, stateDir } = story
        const begin = (allocId: string, script: PluginScript) => async () => {
          const plugin = keep(await scriptedPlugin({ socketPath: `${stateDir}/${allocId}.sock`, script }))
          const connection = { socketPath: plugin.socketPath }
          const options = { taskName: old.taskName }
          await host.registry.register({ type: 'csi-controller', name: 'ebs', allocId, connection, options })
          return plugin
        }
        const plugins = { first: begin('old', oldScript), second: begin('young', youngScript) }
        const { created, second } = await lostBeside(story, plugins, { timeoutMs: 2_000 })
        tell(story)
        const failure = await failureOf(created)
        expect(outcomeOf(failure)).to.equal('unknown')
        expect(failure.details).to.not.have.property('attempts') // there was one
        expect(creations(second)).to.deep.equal([])
      }),
    )
})
