import {
  rpcDefinitions,
  type CsiCall,
  type CsiCallOptions,
  type CsiRequest,
  type CsiResponse,
  type CsiRpc,
} from './rpcs.js'

/** One method for each call, named as it is in camel case: `client.nodeGetInfo()`. See {@link CsiCall} for what they throw. */
export type CsiMethods = {
  [Rpc in CsiRpc as Uncapitalize<Rpc>]: (
    request?: CsiRequest<Rpc>,
    options?: CsiCallOptions,
  ) => Promise<CsiResponse<Rpc>>
}

/**
 * A client for a plugin, over whatever channel is the right one at each call.
 *
 * @example
 * const client = host.client<CsiClient>('csi-node', 'ebs')
 * const { node_id } = await client.nodeGetInfo()
 */
export interface CsiClient extends CsiMethods {
  /** Makes a call by its name. */
  readonly call: CsiCall
}

/** @param pick gives the channel for a call; what it throws is what the call rejects with. */
export function csiClient(pick: () => { readonly call: CsiCall }): CsiClient {
  const call: CsiCall = async (...args) => pick().call(...args)
  const methods = [...rpcDefinitions().keys()].map((rpc) => [
    `${rpc.charAt(0).toLowerCase()}${rpc.slice(1)}`,
    (request?: CsiRequest<CsiRpc>, options?: CsiCallOptions) => call(rpc as CsiRpc, request, options),
  ])
  return { ...(Object.fromEntries(methods) as CsiMethods), call }
}
