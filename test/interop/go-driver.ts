import { join } from 'node:path'
import type { TaskSpec } from '../../lib/task/driver.js'
import { pluginTask } from '../stories/support.js'
import { tools } from './tools.js'

export interface GoDriverOptions {
  /** What it calls itself, and its node. */
  driverName?: string
  /** Volumes have to be published by the controller before the node takes them. */
  attach?: boolean
  /** How many volumes a node takes. */
  maxVolumes?: number
}

/**
 * A task that runs Kubernetes' mock CSI driver (`programs/mock-driver`) as a monolith named `hostpath`: a server made with grpc-go and the
 * bindings of the CSI project, with real bind mounts for what it publishes. Its volumes and its memory are in `stateDir` and outlive it.
 * SIGTERM ends it at once and leaves its socket behind. Mounts need root.
 */
export async function goDriver(
  stateDir: string,
  options: GoDriverOptions = {},
  overrides: Partial<TaskSpec> = {},
): Promise<TaskSpec> {
  const { driverName = 'hostpath.csi.example', attach = false, maxVolumes = 0 } = options
  const program = join(await tools(), 'mock-driver')
  const flags = { drivername: driverName, statedir: stateDir, attach, maxvolumes: maxVolumes }
  return {
    ...pluginTask({ csiPlugin: { id: 'hostpath', type: 'monolith' } }),
    command: [program, ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`)],
    ...overrides,
  }
}
