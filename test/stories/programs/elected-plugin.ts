// A plugin that is ready only while it leads: of those with the same lock (`argv`), the one that could bind that socket. The lock of one
// that is gone is taken over.
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { removeDeadSocket } from '../../../lib/csi/socket-file.js'
import { socketPathOf } from '../../../lib/csi/server.js'
import { scriptedPlugin } from '../../testing/scripted-plugin.js'

const [, , lock = '', version = ''] = process.argv
const plugin = await scriptedPlugin({
  socketPath: socketPathOf(process.env['CSI_ENDPOINT'] ?? ''),
  script: { version, ready: false },
})
process.once('SIGTERM', () => process.exit(0))

const leads = (): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(lock, () => resolve(true))
  })
while (!(await leads())) {
  await removeDeadSocket(lock).catch(() => undefined) // somebody leads
  await pause(20)
}
await plugin.change({ ready: true })
