import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import type { VolumeState } from '../../lib/volume/volume.js'
import { mountsBelow } from '../interop/mounts.js'
import { crashCases, plugin, useBy, type CrashCase } from './volumes-cases.js'
import { created, phasesOf, type VolumeStory } from './volumes-support.js'

/** Makes a volume for each case, as it is before the crash. Gives their ids. */
export async function beforeTheCrash(story: VolumeStory): Promise<string[]> {
  const begin = async ({ what, isShared }: CrashCase, at: number): Promise<string> => {
    const volumeId = await created(story, `v${at}`)
    if (isShared) await story.volumes.mount(useBy('other', volumeId))
    if (what === 'unmount') {
      const { path } = await story.volumes.mount(useBy('killed', volumeId))
      writeFileSync(join(path, 'mark'), '')
    }
    return volumeId
  }
  return Promise.all(crashCases.map(begin))
}

/** Waits until each volume is what was wanted of it, whole or not at all, holds the mount table against it, and clears it all away. */
export async function afterTheCrash(story: VolumeStory, ids: readonly string[]): Promise<void> {
  const { volumes, states, stateDir } = story
  const usersOf = ({ what, isShared }: CrashCase): string[] => [
    ...(what === 'mount' ? ['killed mounted'] : []),
    ...(isShared ? ['other mounted'] : []),
  ]
  const expected = crashCases
    .map((one, at) => ({ volumeId: ids[at], users: usersOf(one) }))
    .filter(({ users }) => users.length > 0)
    .map(({ volumeId, users }) => `${volumeId}: ${users.join(', ')}`)
  const seen = (state: readonly VolumeState[]): string[] =>
    state.map((volume) => `${volume.volumeId}: ${phasesOf([volume]).sort().join(', ')}`)
  await states.until((state) => seen(state).sort().join() === expected.sort().join())

  const held = volumes.list()
  const claims = held.flatMap(({ volumeId, claims }) =>
    claims.map(({ allocId, path }) => ({ volumeId, allocId, path })),
  )
  const mounted = mountsBelow(stateDir).map(({ path }) => path)
  const targets = mounted.filter((path) => path.includes('/per-alloc/'))
  expect(targets.sort()).to.deep.equal(claims.map(({ path }) => path).sort())
  const staged = mounted.filter((path) => path.includes('/staging/'))
  expect([staged.length, new Set(staged).size]).to.deep.equal([held.length, held.length])

  const marked = ids.filter((_, at) => crashCases[at]?.what === 'unmount')
  for (const { volumeId, path } of claims) {
    writeFileSync(join(path, 'new'), '')
    expect(readdirSync(path)).to.deep.equal(marked.includes(volumeId) ? ['mark', 'new'] : ['new'])
  }
  const used = claims.map(({ volumeId, allocId }) => useBy(allocId as 'killed' | 'other', volumeId))
  await Promise.all(used.map((use) => volumes.unmount(use)))
  await Promise.all(ids.map((volumeId) => volumes.delete({ plugin, volumeId })))
}
