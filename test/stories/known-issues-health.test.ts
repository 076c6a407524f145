import { expect } from 'chai'
import type { PluginScript } from '../testing/plugin-script.js'
import { aVolumeStory, diskTask, use, volumeCalls } from './quirks-support.js'
import { phasesOf } from './volumes-support.js'

describe('what a plugin says of the health of a volume', () => {
  const reports: readonly [what: string, script: PluginScript, reason: string | undefined][] = [
    [
      'abnormal, as before CSI 1.13',
      {
        capabilities: { node: ['GET_VOLUME_STATS', 'VOLUME_CONDITION'] },
        replies: {
          NodeGetVolumeStats: [
            { response: { volume_condition: { abnormal: true, message: "The volume isn't mounted" } }, repeat: true },
          ],
        },
      },
      "The volume isn't mounted",
    ],
    [
      'no access, as since then',
      {
        capabilities: { node: ['GET_VOLUME_HEALTH'] },
        replies: {
          NodeGetVolumeHealth: [
            {
              response: {
                volume_health: {
                  volume_id: 'v1',
                  health_statuses: [{ status: 'INACCESSIBLE', reason: 'PathLost', message: 'no path' }],
                },
              },
              repeat: true,
            },
          ],
        },
      },
      'no path',
    ],
    [
      'something nobody knows yet, which says nothing bad',
      {
        capabilities: { node: ['GET_VOLUME_HEALTH'] },
        replies: {
          NodeGetVolumeHealth: [
            {
              response: { volume_health: { volume_id: 'v1', health_statuses: [{ status: 99, reason: 'New' }] } },
              repeat: true,
            },
          ],
        },
      },
      undefined,
    ],
  ]
  // kubernetes-csi/csi-driver-host-path: `abnormal` was seen of a volume that was mounted and well.
  for (const [what, script, message] of reports)
    it(
      `is shown, and no reason to take it away: ${what}`,
      aVolumeStory(async ({ volumes, events, start }) => {
        const plugin = await start(diskTask('node'), script)
        await volumes.mount(use)
        const health = await volumes.health(use)
        expect(health.healthy).to.equal(message === undefined)
        if (message !== undefined) expect(health.problems.map((problem) => problem.message)).to.deep.equal([message])
        expect(phasesOf(volumes.list())).to.deep.equal(['web mounted'])
        expect(events.all.map(({ kind }) => kind)).to.deep.equal(['mounted'])
        await volumes.mount({ ...use, allocId: 'other' })
        expect(volumeCalls(plugin)).to.not.include('NodeUnpublishVolume')
      }),
    )
})
