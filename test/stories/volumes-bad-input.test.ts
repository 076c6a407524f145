import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { MountRequest } from '../../lib/volume/volume.js'
import { mountsBelow } from '../interop/mounts.js'
import type { PluginCall } from '../testing/call-log.js'
import { scriptedPlugin, type ScriptedPlugin } from '../testing/scripted-plugin.js'
import {
  describeWithMounts,
  expectNothingLeft,
  failureOf,
  inMountDirectory,
  mountAccess,
  volumeRecords,
  withVolumes,
  type VolumeStory,
} from './volumes-support.js'

interface LooseStory extends VolumeStory {
  directory: string
  plugin: ScriptedPlugin
}

/** A plugin that takes every id and mounts the same directory for all of them. */
function aLooseStory(tell: (story: LooseStory) => Promise<void>): () => Promise<void> {
  return () =>
    inMountDirectory(async (directory) => {
      const [data, stateDir] = [join(directory, 'data'), join(directory, 'host')]
      mkdirSync(data)
      const onCall = ({ rpc, request }: PluginCall): Promise<void> => {
        const target = String(request['target_path'])
        if (rpc === 'NodePublishVolume') {
          mkdirSync(target, { recursive: true })
          execFileSync('mount', ['--bind', data, target])
        }
        if (rpc === 'NodeUnpublishVolume' && mountsBelow(directory).some(({ path }) => path === target))
          execFileSync('umount', [target])
        return Promise.resolve()
      }
      await withVolumes(stateDir, {}, async (story) => {
        const socketPath = join(directory, 'csi.sock')
        const script = { capabilities: { controller: ['CREATE_DELETE_VOLUME', 'EXPAND_VOLUME'] } }
        const plugin = story.keep(await scriptedPlugin({ socketPath, onCall, script }))
        for (const type of ['csi-controller', 'csi-node'])
          await story.host.registry.register({ type, name: 'disk', allocId: 'd1', connection: { socketPath } })
        await tell({ ...story, directory, plugin })
      })
      await expectNothingLeft(stateDir)
    })
}

const use = { plugin: 'disk', volumeId: 'v', allocId: 'a' }

const bad: [field: string, value: string, change: object][] = [
  ['volumeId', 'an id of 4 KiB', { volumeId: 'v'.repeat(4_096) }],
  ['volumeId', '..', { volumeId: '..' }],
  ['volumeId', 'a path with .. in it', { volumeId: 'a/../../b' }],
  ['volumeId', 'an id with a line break', { volumeId: 'a\nb' }],
  ['volumeId', 'an id with half a surrogate pair', { volumeId: 'a\ud800' }],
  ['volumeId', 'an empty id', { volumeId: '' }],
  ['volumeId', 'a number', { volumeId: 7 }],
  ['allocId', 'an empty alloc', { allocId: '' }],
  ['plugin', 'an empty name', { plugin: '' }],
  ['namespace', 'an empty namespace', { namespace: '' }],
  ['mountName', 'an empty name of a mount', { mountName: '' }],
  ['access.accessMode', 'an access mode that there is not', { access: { kind: 'mount', accessMode: 'ALL' } }],
  ['access.readonly', 'a text for a yes', { access: { ...mountAccess, readonly: 'yes' } }],
  ['secretsRef', 'the name of secrets where there are none', { secretsRef: 'login' }],
  ['timeoutMs', 'no time', {}],
]

describeWithMounts('a mount that is asked for with bad values', () => {
  it(
    'is refused with the name of the field, and leaves no trace',
    aLooseStory(async ({ volumes, plugin, events, problems }) => {
      for (const [field, title, change] of bad) {
        const request = { ...use, ...change } as MountRequest
        const failure = await failureOf(volumes.mount(request, field === 'timeoutMs' ? { timeoutMs: 0 } : {}))
        expect([failure.code, failure.details['field']], title).to.deep.equal(['ERR_OPTION_INVALID', field])
        expect(failure.message, title).to.match(new RegExp(`^${field} `))
        expect(failure.message.length, title).to.be.below(300)
        expect(volumes.list(), title).to.deep.equal([])
      }
      expect(plugin.calls.filter(({ rpc }) => /Volume$/.test(rpc))).to.deep.equal([])
      expect([events.all, problems.all]).to.deep.equal([[], []])
    }),
  )

  it(
    'stays below the root of its plugin, whatever ids are made of',
    aLooseStory(async ({ volumes, stateDir }) => {
      const root = join(stateDir, 'csi', 'volumes', 'disk', 'per-alloc')
      const odd = ['../../x', '..', '.', '/etc', 'a\nb', 'a\0b', 'Ab', 'ab', '\ud800', 'привет 💾', 'x'.repeat(5_000)]
      const uses = [
        ...odd.map((allocId) => ({ ...use, allocId })),
        ...odd.map((namespace) => ({ ...use, namespace })),
        ...odd.map((mountName) => ({ ...use, mountName })),
        ...['привет 💾', 'pool/ds@1', 'https://nas/share#1', 'é', 'e\u0301'].map((volumeId) => ({ ...use, volumeId })),
      ]
      const mounted = await Promise.all(uses.map((one) => volumes.mount(one)))
      expect(new Set(mounted.map(({ path }) => path)).size).to.equal(uses.length)
      for (const { path } of mounted) expect(path.startsWith(`${root}/`)).to.equal(true)
      const really = mountsBelow(stateDir).map(({ path }) => path)
      expect(really.sort()).to.deep.equal(mounted.map(({ path }) => path).sort())
      await Promise.all(uses.map((one) => volumes.unmount(one)))
    }),
  )

  it(
    'is refused where a link leads out of the root, and nothing is made there',
    aLooseStory(async ({ volumes, stateDir, directory, plugin }) => {
      const root = join(stateDir, 'csi', 'volumes', 'disk')
      const outside = join(directory, 'outside')
      mkdirSync(outside)
      await (await volumes.mount(use)).unmount()
      const before = plugin.calls.filter(({ rpc }) => /^Node(Unp|P)ublish/.test(rpc)).length
      symlinkSync(outside, join(root, 'per-alloc', 'evil'))
      mkdirSync(join(outside, 'default', 'v'), { recursive: true })
      mkdirSync(join(root, 'per-alloc', 'worse', 'default', 'v'), { recursive: true })
      symlinkSync(outside, join(root, 'per-alloc', 'worse', 'default', 'v', 'rw-mount-single-node-writer'))
      for (const allocId of ['evil', 'worse']) {
        const failure = await failureOf(volumes.mount({ ...use, allocId }))
        expect(failure.code, allocId).to.equal('ERR_MOUNT')
        expect(failure.message, allocId).to.include(`per-alloc/${allocId}/default/v`)
        expect(volumes.list(), allocId).to.deep.equal([])
        expect(readdirSync(outside, { recursive: true }), allocId).to.deep.equal(['default', 'default/v'])
        expect(mountsBelow(directory), allocId).to.deep.equal([])
      }
      execFileSync('rmdir', ['-p', 'default/v'], { cwd: outside })
      const now = plugin.calls.filter(({ rpc }) => /^Node(Unp|P)ublish/.test(rpc)).length
      expect(now).to.equal(before)
      for (const allocId of ['evil', 'worse']) execFileSync('rm', ['-r', join(root, 'per-alloc', allocId)])
      const staging = join(root, 'staging', 'default', 'v')
      mkdirSync(staging, { recursive: true })
      symlinkSync(outside, join(staging, 'mount-single-node-writer'))
      const failure = await failureOf(volumes.mount(use))
      expect([failure.code, failure.details['path']]).to.deep.equal([
        'ERR_MOUNT',
        join(staging, 'mount-single-node-writer'),
      ])
      expect([volumes.list(), readdirSync(outside), mountsBelow(directory)]).to.deep.equal([[], [], []])
      execFileSync('rm', ['-r', join(root, 'staging', 'default')])
      expect(readdirSync(join(root, 'per-alloc'))).to.deep.equal([])
    }),
  )
})

describeWithMounts('a call to a controller with bad values', () => {
  it(
    'is refused with the name of the field, and leaves no trace',
    aLooseStory(async ({ volumes, stateDir, host, plugin, events }) => {
      const create = { plugin: 'disk', name: 'x', volumeCapabilities: [mountAccess] }
      const tooMuch = 2n ** 63n
      const calls: [field: string, call: () => Promise<unknown>][] = [
        ['capacityRange.requiredBytes', () => volumes.create({ ...create, capacityRange: { requiredBytes: -1n } })],
        ['capacityRange.limitBytes', () => volumes.create({ ...create, capacityRange: { limitBytes: tooMuch } })],
        ['name', () => volumes.create({ ...create, name: '' })],
        ['volumeCapabilities', () => volumes.create({ ...create, volumeCapabilities: [] })],
        ['secretsRef', () => volumes.create({ ...create, secretsRef: 'login' })],
        ['plugin', () => volumes.create({ ...create, plugin: '' })],
        ['volumeId', () => volumes.delete({ plugin: 'disk', volumeId: '../x' })],
        ['sourceVolumeId', () => volumes.snapshot({ plugin: 'disk', name: 's', sourceVolumeId: 'a\nb' })],
        ['volumeId', () => volumes.expand({ plugin: 'disk', volumeId: 'none', capacityRange: { requiredBytes: 1n } })],
        [
          'capacityRange.requiredBytes',
          () => volumes.expand({ plugin: 'disk', volumeId: 'v', capacityRange: { requiredBytes: tooMuch } }),
        ],
      ]
      for (const [field, call] of calls) {
        const failure = await failureOf(call())
        expect([failure.code, failure.details['field']]).to.deep.equal(['ERR_OPTION_INVALID', field])
        expect(failure.message).to.include(field)
      }
      expect(plugin.calls.filter(({ rpc }) => /(Volume|Snapshot)$/.test(rpc))).to.deep.equal([])
      expect(events.all).to.deep.equal([])
      await host.close()
      expect(await volumeRecords(stateDir)).to.deep.equal([])
    }),
  )
})
