// A scripted plugin as a program. Where it listens is in CSI_ENDPOINT; its script is JSON in PLUGSTREAM_SCRIPT, or in the file that
// is named there after an `@`, which is read at every start. It writes a line for every call. Started by `spawnScriptedPlugin`, it
// also does what it is told over IPC, and ends with who started it.
import { readFileSync } from 'node:fs'
import { messageOf } from '../../../lib/errors.js'
import { socketPathOf } from '../../../lib/csi/server.js'
import type { PluginCall } from '../call-log.js'
import type { PluginScript } from '../plugin-script.js'
import { scriptedPlugin, type ScriptedPlugin } from '../scripted-plugin.js'
import type { ChildMessage, ParentMessage } from '../spawn-scripted-plugin.js'

const { CSI_ENDPOINT = '', PLUGSTREAM_SCRIPT = '{}' } = process.env

try {
  const script = JSON.parse(scriptText(PLUGSTREAM_SCRIPT)) as PluginScript
  const plugin = await scriptedPlugin({
    socketPath: socketPathOf(CSI_ENDPOINT),
    script,
    onCall: (call) => tell({ kind: 'call', call }),
    exit: (code) => process.exit(code),
  })
  process.once('SIGTERM', () => void plugin.close().then(() => process.exit(script.exitCode ?? 0)))
  process.once('disconnect', () => process.exit(0))
  process.on('message', (message: ParentMessage) => void obey(plugin, message))
  console.log(`the scripted plugin has started; its socket is ${plugin.socketPath}`)
  await tell({ kind: 'started' })
} catch (failure) {
  console.error(messageOf(failure))
  process.exit(1)
}

function scriptText(given: string): string {
  return given.startsWith('@') ? readFileSync(given.slice(1), 'utf8') : given
}

async function obey(plugin: ScriptedPlugin, { id, method, parameters }: ParentMessage): Promise<void> {
  try {
    await (plugin[method] as (...given: unknown[]) => Promise<void>)(...parameters)
    await tell({ kind: 'done', id })
  } catch (failure) {
    await tell({ kind: 'done', id, failure: messageOf(failure) })
  }
}

/** Resolves when the message is on its way, so that an exit does not swallow it. */
async function tell(message: ChildMessage): Promise<void> {
  if (message.kind === 'call') console.log(line(message.call))
  await new Promise<void>((resolve) => (process.send ? process.send(message, () => resolve()) : resolve()))
}

/** The request is left out: it may have secrets in it. */
function line({ rpc, at }: PluginCall): string {
  return JSON.stringify({ rpc, at })
}
