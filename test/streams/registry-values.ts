import { expect } from 'chai'
import { PlugstreamError } from '../../lib/errors.js'
import type {
  PluginInfo,
  PluginRef,
  PluginRegistration,
  RegistryChange,
  RegistryEvent,
} from '../../lib/plugin/plugin.js'

export const ref = (allocId: string, name = 'ebs', type = 'csi-node'): PluginRef => ({ type, name, allocId })

export const plugin = (allocId: string, more: Partial<PluginInfo> = {}): PluginRegistration => ({
  ...ref(allocId),
  connection: { socketPath: `/run/${allocId}.sock` },
  ...more,
})

export const register = (allocId: string, more: Partial<PluginInfo> = {}): RegistryChange => ({
  kind: 'register',
  plugin: plugin(allocId, more),
})

export const deregister = (allocId: string): RegistryChange => ({ kind: 'deregister', ref: ref(allocId) })

/** An event in short: kind, alloc, and the alloc that is current after it. */
export const short = ({ kind, plugin, current }: RegistryEvent): string =>
  `${kind} ${plugin.allocId}, current ${current?.allocId ?? 'none'}`

export const allocs = (plugins: readonly PluginInfo[]): string[] => plugins.map(({ allocId }) => allocId)

/** What a piece of work is refused with. */
export async function refusal(work: Promise<unknown>): Promise<PlugstreamError> {
  const thrown: unknown = await work.then(
    () => 'nothing was refused',
    (failure: unknown) => failure,
  )
  expect(thrown).to.be.instanceOf(PlugstreamError)
  return thrown as PlugstreamError
}
