import { rpcDefinition, type CsiRpc } from '../../lib/csi/rpcs.js'
import { invalidOption } from '../../lib/errors.js'
import { fieldsOf, isObject, takeOptions } from '../../lib/options.js'
import type { PluginScript, Reply } from './plugin-script.js'

const scriptFields = fieldsOf<PluginScript>({
  name: true,
  version: true,
  nodeId: true,
  services: true,
  ready: true,
  capabilities: true,
  maxVolumes: true,
  topology: true,
  replies: true,
  listen: true,
  mute: true,
  idleConnectionMs: true,
  locksVolumes: true,
  exitCode: true,
})
const replyFields = fieldsOf<Reply>({
  delayMs: true,
  response: true,
  status: true,
  message: true,
  fault: true,
  repeat: true,
})
const lists = ['plugin', 'controller', 'node', 'groupController']

/** @throws ERR_OPTION_INVALID naming the field: what is misspelt would be passed over, and the test that stands on it would prove nothing. */
export function checkScript<Script extends PluginScript | undefined>(script: Script): Script {
  if (script === undefined) return script
  const { capabilities = {}, replies = {} } = takeOptions('script', script, scriptFields)
  takeOptions('capabilities', capabilities, lists, { below: 'capabilities' })
  if (!isObject(replies)) throw invalidOption('replies', replies, 'an object of lists')
  for (const [rpc, all] of Object.entries(replies)) {
    checkRpc(rpc)
    if (!Array.isArray(all)) throw invalidOption(`replies.${rpc}`, all, 'a list of replies')
    checkReplies(all, `replies.${rpc}`)
  }
  return script
}

/** @throws ERR_OPTION_INVALID naming the field. */
export function checkReplies(replies: readonly Reply[], field = 'replies'): void {
  replies.forEach((reply, at) => takeOptions(`${field}[${at}]`, reply, replyFields, { below: `${field}[${at}]` }))
}

/** @throws ERR_OPTION_INVALID where there is no such call: it would never come. */
export function checkRpc(rpc: string): asserts rpc is CsiRpc {
  if (!rpcDefinition(rpc, 'unary')) throw invalidOption('rpc', rpc, 'the name of a CSI call with one answer')
}
