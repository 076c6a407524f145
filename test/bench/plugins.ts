import type { PluginRegistration } from '../../lib/plugin/plugin.js'
import type { Registry } from '../../streams/registry.js'

/** A registration of the usual size. */
export function plugin(
  number: number,
  socketPath = `/var/lib/agent/csi/plugins/${number}/csi.sock`,
): PluginRegistration {
  return {
    type: 'csi-node',
    name: `plugin-${number % 100}`,
    allocId: `b1946ac9-2492-4d23-97cf-${String(number).padStart(12, '0')}`,
    version: '1.0.0',
    provider: 'bench.plugstream.example',
    connection: { socketPath },
    options: { taskName: 'plugin', mountPoint: '/var/lib/agent/csi/volumes/plugin', containerMountPoint: '/local/csi' },
  }
}

/** Registers `count` of them, many at a time. */
export async function fill(registry: Registry, count: number): Promise<void> {
  for (let from = 0; from < count; from += 1_000) {
    const numbers = Array.from({ length: Math.min(1_000, count - from) }, (_, at) => from + at)
    await Promise.all(numbers.map((number) => registry.register(plugin(number))))
  }
}
