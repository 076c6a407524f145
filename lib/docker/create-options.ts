import type Dockerode from 'dockerode'
import type { TaskSpec } from '../task/driver.js'
import type { TaskMount, TaskResources } from '../task/task.js'
import type { ContainerSettings } from './container-task.js'
import { containerLabels, containerName, hashOfSpec, labelNames } from './labels.js'

/** What the engine is asked to make. */
export interface ContainerPlan {
  hostId: string
  spec: TaskSpec
  settings: ContainerSettings
  resources: TaskResources
  /** The engine's own copy of the logs is cut at this size. */
  maxLogBytes: number
}

/** All mounts of a container, as the task sees them: one without isolation sees the host's paths. */
export function mountsOf({ spec, settings, resources }: ContainerPlan): TaskMount[] {
  return [...resources.mounts, ...(settings.mounts ?? [])].map((mount) =>
    spec.isolation === 'none' ? { ...mount, taskPath: mount.hostPath } : mount,
  )
}

export function createOptions(plan: ContainerPlan): Dockerode.ContainerCreateOptions {
  const { hostId, spec, settings, resources, maxLogBytes } = plan
  const { user, network, privileged = false, capabilities = [], devices = [], memoryBytes, cpus, pidsLimit } = settings
  const [program, ...args] = spec.command
  return {
    name: containerName(hostId, spec),
    Image: settings.image,
    Entrypoint: [program],
    Cmd: args,
    Env: Object.entries({ ...resources.env, ...spec.env }).map(([name, value]) => `${name}=${value}`),
    Labels: { ...containerLabels(hostId, spec), [labelNames.spec]: hashOfSpec(spec) },
    ...(spec.cwd !== undefined && { WorkingDir: spec.cwd }),
    ...(user !== undefined && { User: user }),
    HostConfig: {
      // An init of the engine's: as process 1 a program without a handler would ignore SIGTERM, and keep the zombies of its children.
      Init: true,
      Binds: mountsOf(plan).map(bindOf),
      Privileged: privileged,
      CapAdd: [...capabilities],
      Devices: devices.map((path) => ({ PathOnHost: path, PathInContainer: path, CgroupPermissions: 'rwm' })),
      LogConfig: { Type: 'json-file', Config: { 'max-size': String(maxLogBytes) } },
      ...(network !== undefined && { NetworkMode: network }),
      ...(memoryBytes !== undefined && { Memory: Math.ceil(memoryBytes) }),
      ...(cpus !== undefined && { NanoCpus: Math.ceil(cpus * 1e9) }),
      ...(pidsLimit !== undefined && { PidsLimit: Math.ceil(pidsLimit) }),
    },
  }
}

/** In the old form of the API: in the new one Podman leaves out what is mounted below a directory, when its propagation is given. */
function bindOf({ hostPath, taskPath, readonly, propagation }: TaskMount): string {
  return `${hostPath}:${taskPath}:${readonly ? 'ro' : 'rw'},${propagation === 'bidirectional' ? 'rshared' : 'rprivate'}`
}
