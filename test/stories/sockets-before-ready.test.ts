import { chmod, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { expect } from 'chai'
import type { HealthReason } from '../../lib/plugin/health.js'
import { asNobody, PlainServer, staleSocket } from '../support/sockets.js'
import type { PluginScript } from '../testing/plugin-script.js'
import { scriptedPlugin } from '../testing/scripted-plugin.js'
import { aStory, isHealthy, kindsOf, pluginTask, type Story } from './support.js'

const timing = { unhealthyBeatMs: 50, probeTimeoutMs: 50, rpcTimeoutMs: 50 }
/** Time for two probes that are not answered, and a bit. */
const task = pluginTask({ csiPlugin: { id: 'ebs', type: 'node', healthTimeoutMs: 250, initTimeoutMs: 250 } })

/** Puts something in the place of the socket; what is given back makes a good plugin of it. */
type Wrong = (socketPath: string, story: Story) => Promise<() => Promise<unknown>>

const served =
  (script: PluginScript): Wrong =>
  async (socketPath, { keep }) => {
    const plugin = keep(await scriptedPlugin({ socketPath, script }))
    return () => (script.mute ? plugin.rebind({ mute: false }) : plugin.change({ ready: true, replies: {} }))
  }
const files =
  (put: (path: string) => Promise<unknown>): Wrong =>
  async (socketPath, { keep }) => {
    await put(socketPath)
    return async () => {
      await rm(socketPath, { force: true })
      keep(await scriptedPlugin({ socketPath }))
    }
  }
/** A server that answers everything with one line that is no HTTP/2. */
const talking: Wrong = async (socketPath, { keep }) => {
  const plain = await PlainServer.listen(socketPath)
  plain.server.on('connection', (connection) => connection.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  return async () => {
    await plain[Symbol.asyncDispose]()
    keep(await scriptedPlugin({ socketPath }))
  }
}

const rows: readonly [what: string, wrong: Wrong, reason: HealthReason, words: string][] = [
  ['is not there', files(async () => undefined), 'socket-missing', 'there is no socket'],
  ['was left behind by a dead process', files(staleSocket), 'socket-refused', 'ECONNREFUSED'],
  ['is a regular file', files((path) => writeFile(path, 'mine')), 'not-a-socket', 'no socket'],
  ['accepts, and never says a word', served({ mute: true }), 'probe-timeout', 'did not answer two probes of 50 ms'],
  ['is not ready yet', served({ ready: false }), 'not-ready', 'not ready yet'],
  [
    'serves gRPC, and no CSI version 1',
    served({
      replies: {
        Probe: [{ status: 'UNIMPLEMENTED', repeat: true }],
        GetPluginInfo: [{ status: 'UNIMPLEMENTED', repeat: true }],
      },
    }),
    'not-csi',
    'not CSI version 1',
  ],
  ['speaks another protocol', talking, 'not-csi', 'Probe failed'],
  [
    'drops every connection',
    served({ replies: { Probe: [{ fault: 'disconnect', repeat: true }] } }),
    'disconnected',
    'Probe failed',
  ],
  [
    'answers with errors',
    served({ replies: { Probe: [{ status: 'INTERNAL', message: 'oh no', repeat: true }] } }),
    'probe-failed',
    'oh no',
  ],
  [
    'has no name',
    served({ replies: { GetPluginInfo: [{ response: { name: '' }, repeat: true }] } }),
    'probe-failed',
    'gave no name',
  ],
  [
    'knows no GetPluginInfo',
    served({ replies: { GetPluginInfo: [{ status: 'UNIMPLEMENTED', repeat: true }] } }),
    'not-csi',
    'does not speak CSI version 1',
  ],
]

describe('a plugin whose socket, after its start,', () => {
  for (const [what, wrong, reason, words] of rows)
    it(
      `${what}: ${reason}, and ready once it is`,
      aStory({ timing }, async (story) => {
        const { socketPath } = await story.host.prepare(task)
        const makeGood = await wrong(socketPath, story)
        story.tell('started', task)

        const request = await story.restarts.until(() => true)
        expect(request).to.deep.include({ task, reason })
        expect(request.message).to.contain(words).and.contain(`its socket is expected at ${socketPath}`)
        expect(story.notes.all.map((note) => [note.kind, note.reason])).to.deep.equal([
          ['plugin-unhealthy', reason],
          ['restarting', reason],
        ])
        expect(story.host.registry.list()).to.deep.equal([])

        // Nobody restarts it: a plugin that is ready late is a plugin.
        await makeGood()
        await story.health.until(isHealthy)
        await story.notes.until(({ kind }) => kind === 'plugin-healthy')
        expect(kindsOf(story.registry.all)).to.deep.equal(['registered'])
        expect(story.restarts.all).to.have.length(1)
      }),
    )

  it(
    'may not be opened: access-denied, and ready once it may',
    aStory({ timing }, async (story) => {
      const { socketPath } = await story.host.prepare(task)
      story.keep(await scriptedPlugin({ socketPath }))
      await chmod(dirname(socketPath), 0o000)
      await asNobody(async () => {
        story.tell('started', task)
        expect(await story.restarts.until(() => true)).to.include({ reason: 'access-denied' })
      })
      await chmod(dirname(socketPath), 0o700)
      await story.health.until(isHealthy)
      expect(story.restarts.all).to.have.length(1)
    }),
  )

  it(
    'comes late is no reason for a note',
    aStory({}, async ({ start, health, notes, restarts }) => {
      await start(pluginTask(), { listen: { afterMs: 50 } })
      await health.until(isHealthy)
      await notes.until(() => true)
      expect(notes.all.map(({ kind }) => kind)).to.deep.equal(['plugin-healthy'])
      expect(restarts.all).to.deep.equal([])
    }),
  )
})
