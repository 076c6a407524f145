export { serveCsi, type CsiServer, type CsiServerInit } from './server.js'
export type { CallContext, CsiServices } from './server-handlers.js'
export { CsiStatusError, status, type CsiStatusName } from './server-status.js'
