import { invalidOption } from '../errors.js'
import { takeOptions } from '../options.js'
import type { TaskMount } from '../task/task.js'

/** What a container is given besides what any task has. */
export interface ContainerSettings {
  /** Any reference the engine understands. Pulled where the engine does not have it. */
  image: string
  /** `never`: an image that the engine does not have is a failure. Default: `missing`. */
  pull?: 'missing' | 'never' | undefined
  /** `user`, `uid` or `uid:gid`, as the image knows them. Default: the image's. */
  user?: string | undefined
  /** A network of the engine, `host` or `none`. Default: the engine's. */
  network?: string | undefined
  /** All rights of the host. CSI drivers that mount need it. Default: false. */
  privileged?: boolean | undefined
  /** Capabilities beyond the engine's defaults, as `SYS_ADMIN`. */
  capabilities?: readonly string[] | undefined
  /** Device nodes of the host, which it sees under the same path. */
  devices?: readonly string[] | undefined
  /** Beyond this it is ended: the reason of its exit is `out of memory`. Default: no limit. */
  memoryBytes?: number | undefined
  /** How much processor time it may use, 1.5 being one and a half processors. Default: no limit. */
  cpus?: number | undefined
  /** How many processes and threads it may have. Default: the engine's. */
  pidsLimit?: number | undefined
  /** Directories and files of the host that it sees besides those it is given as a plugin. They have to be there. */
  mounts?: readonly TaskMount[] | undefined
}

const texts = ['user', 'network'] as const
const lists = ['capabilities', 'devices'] as const
const amounts = ['memoryBytes', 'cpus', 'pidsLimit'] as const
const known = ['image', 'pull', 'privileged', 'mounts', ...texts, ...lists, ...amounts]

/**
 * Checks the `container` block of a task, and gives it back.
 *
 * @throws ERR_OPTION_INVALID naming the field, its value and what is allowed; an unknown field is one.
 */
export function readContainer(given: unknown): ContainerSettings {
  const fields = takeOptions('container', given, known, { below: 'container' }) as Record<string, unknown>
  if (!isText(fields['image'])) throw invalidOption('container.image', fields['image'], 'the name of an image')
  check(fields, 'pull', (value) => value === 'missing' || value === 'never', 'missing or never')
  check(fields, 'privileged', (value) => typeof value === 'boolean', 'true or false')
  for (const name of texts) check(fields, name, isText, 'a text that is not empty')
  for (const name of lists)
    check(fields, name, (value) => Array.isArray(value) && value.every(isText), 'a list of texts')
  for (const name of amounts) check(fields, name, isAmount, 'a number above 0')
  check(fields, 'mounts', (value) => Array.isArray(value) && value.every(isMount), 'a list of mounts')
  return given as ContainerSettings
}

function check(
  fields: Record<string, unknown>,
  name: string,
  fits: (value: unknown) => boolean,
  allowed: string,
): void {
  const value = fields[name]
  if (value !== undefined && !fits(value)) throw invalidOption(`container.${name}`, value, allowed)
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== '' && !value.includes('\0')
}

function isAmount(value: unknown): boolean {
  return typeof value === 'number' && value > 0 && Number.isFinite(value)
}

function isMount(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { hostPath, taskPath, readonly, propagation } = value as Partial<Record<keyof TaskMount, unknown>>
  return (
    isText(hostPath) &&
    isText(taskPath) &&
    typeof readonly === 'boolean' &&
    (propagation === 'private' || propagation === 'bidirectional')
  )
}
