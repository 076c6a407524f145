export { csiKind, type CsiKind } from './kind.js'
export { CsiChannel } from './channel.js'
export {
  csiClient,
  type CsiClient,
  type CsiClientInit,
  type CsiMethods,
  type CsiOptions,
  type CsiTarget,
} from './client.js'
export type { TellCapabilities } from './gate.js'
export type { CapabilityList } from './needs.js'
export type { AttemptPorts } from './retries.js'
export type { CsiOperations } from './operations.js'
export { outcomeOf, type CallOutcome } from './status.js'
export { retryDelayMs, retryPolicy, type Failure, type RetryPolicy, type RetryRule } from './retry-policy.js'
export { parseCsiPlugin } from './csi-plugin.js'
export type {
  AnyCsiRpc,
  CsiCall,
  CsiCallOptions,
  CsiRequest,
  CsiResponse,
  CsiRpc,
  CsiStreamCall,
  CsiStreamRpc,
  WireRequest,
  WireResponse,
} from './rpcs.js'
export { serveCsi, type CsiServer, type CsiServerInit } from './server.js'
export type { CallContext, CsiServices } from './server-handlers.js'
export { CsiStatusError, status, type CsiStatusName } from './server-status.js'
export type * from './messages/index.js'
