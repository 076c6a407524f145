import type { Capabilities } from '../../plugin/fingerprint.js'
import { capabilitiesOf } from '../capabilities.js'
import { flag, required, text, textMap, wrapped, type Reads, type TextMap } from '../codec.js'
import type { GetPluginCapabilitiesResponse__Output } from '../generated/csi/v1/GetPluginCapabilitiesResponse.js'
import type { GetPluginInfoResponse__Output } from '../generated/csi/v1/GetPluginInfoResponse.js'
import type { ProbeResponse__Output } from '../generated/csi/v1/ProbeResponse.js'
import { response } from '../message.js'

/** Who a plugin is. */
export interface GetPluginInfoResponse {
  name: string
  /** Of no fixed form; drivers were seen to leave it empty, against the specification. */
  vendorVersion: string
  /** Anything else, for people. */
  manifest: TextMap
}

/** What a driver has behind all of its sockets together. A node's socket may claim CONTROLLER_SERVICE, too. */
export interface GetPluginCapabilitiesResponse {
  service: Capabilities
  /** ONLINE, OFFLINE. */
  volumeExpansion: Capabilities
}

export interface ProbeResponse {
  /** False: still starting, which is no failure. Absent means ready. */
  ready?: boolean
}

export const pluginInfo = response<GetPluginInfoResponse, GetPluginInfoResponse__Output>({
  name: required(text),
  vendorVersion: text,
  manifest: textMap,
})

export const pluginCapabilities: Reads<GetPluginCapabilitiesResponse__Output, GetPluginCapabilitiesResponse> = {
  read: ({ capabilities }) => ({
    service: capabilitiesOf(capabilities.map(({ service }) => service?.type)),
    volumeExpansion: capabilitiesOf(capabilities.map(({ volume_expansion }) => volume_expansion?.type)),
  }),
}

export const probeAnswer = response<ProbeResponse, ProbeResponse__Output>({ ready: wrapped(flag) })

/** The capabilities of a service. */
export const rpcCapabilities: Reads<{ capabilities: readonly { rpc?: { type: string } | null }[] }, Capabilities> = {
  read: ({ capabilities }) => capabilitiesOf(capabilities.map(({ rpc }) => rpc?.type)),
}
