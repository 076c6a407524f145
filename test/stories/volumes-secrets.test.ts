import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { inspect } from 'node:util'
import { status } from '@grpc/grpc-js'
import { expect } from 'chai'
import type { SecretsRequest } from '../../lib/volume/volume.js'
import { mountsBelow } from '../interop/mounts.js'
import { servePlugin, type Handler } from '../lib/csi/plugin-server.js'
import { answers } from '../testing/plugin-script.js'
import { describeWithMounts, failureOf, inMountDirectory, mountAccess, withVolumes } from './volumes-support.js'

const password = 'correct-horse-battery'
const mounting = ['ControllerPublishVolume', 'NodeStageVolume', 'NodePublishVolume'] as const
const withSecrets = ['CreateVolume', ...mounting, 'ControllerUnpublishVolume'] as const
const others = [
  ...['GetPluginInfo', 'Probe', 'GetPluginCapabilities', 'ControllerGetCapabilities', 'NodeGetCapabilities'],
  ...['NodeGetInfo', 'DeleteVolume', 'NodeUnpublishVolume', 'NodeUnstageVolume'],
]

/** Repeats in its errors what it was given, as no server of ours would: each of its calls fails once before it is done. */
function tactless(data: string) {
  const given = new Map<string, unknown>()
  const failing = new Set<string>([...withSecrets, 'NodeUnpublishVolume', 'NodeUnstageVolume'])
  const handler =
    (rpc: string): Handler =>
    (request) => {
      const { secrets, target_path: target = '' } = request as { secrets?: object; target_path?: string }
      if (secrets && Object.keys(secrets).length > 0) given.set(rpc, { ...secrets })
      if (failing.delete(rpc))
        throw Object.assign(new Error(), { code: status.INTERNAL, details: `mount -o password=${password}: failed` })
      if (rpc === 'NodePublishVolume') {
        mkdirSync(target)
        execFileSync('mount', ['--bind', data, target])
      }
      if (rpc === 'NodeUnpublishVolume' && mountsBelow(dirname(target)).length > 0) execFileSync('umount', [target])
      return answers[rpc as keyof typeof answers]?.({}, request as Record<string, unknown>) ?? {}
    }
  const rpcs = [...withSecrets, ...others]
  return { given, handlers: Object.fromEntries(rpcs.map((rpc) => [rpc, handler(rpc)])) }
}

/** The files below a directory that have a text in them. */
const filesWith = (directory: string, text: string): string[] =>
  readdirSync(directory, { recursive: true })
    .map(String)
    .filter((name) => statSync(join(directory, name)).isFile())
    .filter((name) => readFileSync(join(directory, name)).includes(text))

describeWithMounts('the secrets of a volume', () => {
  it('reach the plugin, and are in nothing that is stored or told, also where the plugin repeats them', () =>
    inMountDirectory(async (directory) => {
      const [data, stateDir, socketPath] = [
        join(directory, 'data'),
        join(directory, 'host'),
        join(directory, 'csi.sock'),
      ]
      mkdirSync(data)
      const { given, handlers } = tactless(data)
      const asked: SecretsRequest[] = []
      const secrets = (request: SecretsRequest) => {
        asked.push(request)
        return request.secretsRef === 'login' ? { password } : undefined
      }
      await withVolumes(stateDir, { secrets }, async (story) => {
        const { volumes, host, states, events, problems, nodes, health } = story
        story.keep(await servePlugin(socketPath, handlers))
        for (const type of ['csi-controller', 'csi-node'])
          await host.registry.register({ type, name: 'disk', allocId: 'd1', connection: { socketPath } })
        const failures: unknown[] = []
        const again = async <T>(work: () => Promise<T>): Promise<T> => {
          failures.push(await failureOf(work()))
          return work()
        }
        const request = { plugin: 'disk', name: 'data', volumeCapabilities: [mountAccess], secretsRef: 'login' }
        const { volume } = await again(() => volumes.create(request))
        const use = { plugin: 'disk', volumeId: volume.volumeId, allocId: 'a', secretsRef: 'login' }
        for (const _rpc of mounting) failures.push(await failureOf(volumes.mount(use)))
        await volumes.mount(use)
        expect([...given.keys()]).to.have.members(withSecrets)
        for (const secrets of given.values()) expect(secrets).to.deep.equal({ password })
        expect(asked).to.deep.include({
          secretsRef: 'login',
          rpc: 'NodeStageVolume',
          plugin: 'disk',
          volumeId: volume.volumeId,
        })
        failures.push(await failureOf(volumes.mount({ ...use, allocId: 'b', secretsRef: 'none' })))
        expect(failures.at(-1)).to.deep.include({ code: 'ERR_OPTION_INVALID', details: { field: 'secretsRef' } })
        expect(filesWith(stateDir, volume.volumeId)).not.to.deep.equal([])
        expect(filesWith(stateDir, password)).to.deep.equal([])

        await volumes.unmount(use)
        await volumes.delete({ plugin: 'disk', volumeId: volume.volumeId })
        const told = [states, events, problems, nodes, health].map(({ all }) => all)
        expect(told.flat()).not.to.deep.equal([])
        expect(inspect([told, failures], { depth: null, showHidden: true })).not.to.include(password)
      })
      expect(filesWith(stateDir, password)).to.deep.equal([])
    }))
})
