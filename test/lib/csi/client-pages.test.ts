import { expect } from 'chai'
import { all, caught, clientsOfPlugins } from './client-support.js'

describe('the CSI client', () => {
  const { connect } = clientsOfPlugins()

  describe('goes through the pages of a list', () => {
    const page = (ids: string[], next_token = '') => ({
      response: { entries: ids.map((volume_id) => ({ volume: { volume_id } })), next_token },
    })
    const capabilities = { controller: ['LIST_VOLUMES', 'LIST_SNAPSHOTS', 'LIST_VOLUME_HEALTH'] }

    it('one at a time, as far as the reader goes', async () => {
      const { client, plugin } = await connect({
        capabilities,
        replies: { ListVolumes: [page(['a', 'b'], 't1'), page([], 't2'), page(['c'])] },
      })
      const ids: string[] = []
      for await (const { volume } of client.allVolumes({ maxEntries: 2 })) ids.push(volume.volumeId)
      expect(ids).to.deep.equal(['a', 'b', 'c'])
      const asked = plugin.calls.filter(({ rpc }) => rpc === 'ListVolumes').map(({ request }) => request)
      expect(asked).to.deep.equal([
        { max_entries: 2, starting_token: '' },
        { max_entries: 2, starting_token: 't1' },
        { max_entries: 2, starting_token: 't2' },
      ])

      await plugin.reply('ListVolumes', page(['a', 'b'], 't1'))
      for await (const _ of client.allVolumes()) break
      expect(plugin.calls.filter(({ rpc }) => rpc === 'ListVolumes')).to.have.length(4)
    })

    it('for snapshots and for health, too', async () => {
      const snapshot = { snapshot_id: 's', source_volume_id: 'v', creation_time: { seconds: 1, nanos: 0 } }
      const { client } = await connect({
        capabilities,
        replies: {
          ListSnapshots: [{ response: { entries: [{ snapshot }] } }],
          ControllerListVolumeHealth: [{ response: { entries: [{ volume_id: 'v' }] } }],
        },
      })
      expect((await all(client.allSnapshots({ sourceVolumeId: 'v' })))[0]?.snapshot.createdAt).to.equal(1_000)
      expect(await all(client.allVolumeHealth())).to.deep.equal([{ volumeId: 'v', healthy: true, problems: [] }])
    })

    it('and not for ever: a token that comes again, at once or later, and pages that stay empty', async () => {
      const endless = { ...page([], 'same'), repeat: true }
      const circle = [page(['a'], 't1'), page(['b'], 't2'), page(['c'], 't1')]
      const empty = Array.from({ length: 110 }, (_, at) => page([], `t${at}`))
      for (const replies of [[endless], circle, empty]) {
        const { client, asked } = await connect({ capabilities, replies: { ListVolumes: replies } })
        const failure = await caught(all(client.allVolumes()))
        expect(failure.code).to.equal('ERR_CSI_PROTOCOL')
        expect(asked().length).to.be.at.most(103)
      }
    })

    it('until its signal is aborted', async () => {
      const { client } = await connect({
        capabilities,
        replies: { ListVolumes: [page(['a'], 't'), { fault: 'hang' }] },
      })
      const stop = new AbortController()
      const reading = caught(
        (async () => {
          for await (const _ of client.allVolumes({}, { signal: stop.signal })) stop.abort()
        })(),
      )
      expect((await reading).code).to.equal('ERR_ABORTED')
    })
  })
})
