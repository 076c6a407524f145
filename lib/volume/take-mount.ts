import type { TextMap } from '../csi/codec.js'
import { volumeIdLimitBytes } from '../defaults.js'
import { invalidOption } from '../errors.js'
import { copied, fieldsOf, isObject, takeOptions } from '../options.js'
import { usualAccess } from './usage.js'
import type {
  ClaimState,
  MountedVolume,
  MountRef,
  MountRequest,
  UnmountRef,
  VolumeAccess,
  VolumeEvent,
  VolumeRef,
  VolumeState,
} from './volume.js'

/** Which volume, with nothing left out. */
export interface TakenRef {
  plugin: string
  namespace: string
  volumeId: string
}

/** Which use of it. */
export interface TakenMount extends TakenRef {
  allocId: string
  access: VolumeAccess
  mountName?: string
}

/** What a mount was asked for with besides. */
export interface TakenRequest extends TakenMount {
  secretsRef?: string
  volumeContext?: TextMap
  publishContext?: TextMap
}

/** Fails with ERR_OPTION_INVALID where a value cannot be sent as what it is meant for. */
export type CheckAccess = (access: VolumeAccess, field: string) => void

const refFields = fieldsOf<MountRef>({
  plugin: true,
  volumeId: true,
  namespace: true,
  allocId: true,
  access: true,
  mountName: true,
})
const requestFields = fieldsOf<Omit<MountRequest, keyof MountRef>>({
  secretsRef: true,
  volumeContext: true,
  publishContext: true,
})

/** A volume may be named by what it was mounted with, what came of that, or what is told of it. */
const told = fieldsOf<Omit<MountedVolume & VolumeState & ClaimState & VolumeEvent, keyof MountRef>>({
  path: true,
  unmount: true,
  staged: true,
  attachedTo: true,
  claims: true,
  phase: true,
  problem: true,
  failingSince: true,
  attempts: true,
  kind: true,
  call: true,
  message: true,
  at: true,
})

/** What to say to who gives secrets themselves, which would be stored with the rest. */
export const secretsByName = { secrets: 'secretsRef has the name of them, and openHost({ secrets }) gives them' }

/** @param own fields that there are besides. @throws ERR_OPTION_INVALID naming the field. */
export function takeRef(given: VolumeRef, own: readonly string[] = []): TakenRef {
  takeOptions('volume', given, [...refFields, ...own], { also: [...requestFields, ...told], instead: secretsByName })
  const { plugin, volumeId, namespace = 'default' } = given
  return {
    plugin: name('plugin', plugin),
    namespace: name('namespace', namespace),
    volumeId: takeVolumeId('volumeId', volumeId),
  }
}

/** @throws ERR_OPTION_INVALID naming the field. */
export function takeMountRef(given: MountRef, checkAccess: CheckAccess): TakenMount {
  const ref = takeRef(given)
  const { allocId, mountName, access = usualAccess } = given
  return {
    ...ref,
    allocId: name('allocId', allocId),
    access: takeAccess(access, checkAccess),
    ...(mountName !== undefined && { mountName: name('mountName', mountName) }),
  }
}

/** @throws ERR_OPTION_INVALID naming the field. */
export function takeUnmountRef(given: UnmountRef, checkAccess: CheckAccess): TakenMount & { path?: string } {
  const ref = takeMountRef(given, checkAccess)
  return given.path === undefined ? ref : { ...ref, path: name('path', given.path) }
}

/** A copy: its giver may use the object again. @throws ERR_OPTION_INVALID naming the field. */
export function takeMount(given: MountRequest, checkAccess: CheckAccess): TakenRequest {
  takeOptions('volume', given, [...refFields, ...requestFields], { instead: secretsByName })
  const ref = takeMountRef(given, checkAccess)
  const { secretsRef, volumeContext, publishContext } = given
  return {
    ...ref,
    ...(secretsRef !== undefined && { secretsRef: name('secretsRef', secretsRef) }),
    ...(volumeContext !== undefined && { volumeContext: texts('volumeContext', volumeContext) }),
    ...(publishContext !== undefined && { publishContext: texts('publishContext', publishContext) }),
  }
}

/**
 * An id as a plugin may have given it. Drivers make paths of ids, and some remove what is there: one that leads elsewhere is refused, as
 * is one that cannot be shown on a line or is changed on its way.
 */
export function takeVolumeId(field: string, value: unknown): string {
  const id = name(field, value)
  const allowed = `at most ${volumeIdLimitBytes} bytes`
  if (Buffer.byteLength(id) > volumeIdLimitBytes) throw invalidOption(field, id, allowed)
  if (/[\p{Cc}\p{Cs}]/u.test(id)) throw invalidOption(field, id, 'a text without control characters')
  if (id.split('/').some((part) => part === '.' || part === '..'))
    throw invalidOption(field, id, 'an id, not a path with . or .. in it')
  return id
}

function takeAccess(access: VolumeAccess, check: CheckAccess): VolumeAccess {
  if (!isObject(access)) throw invalidOption('access', access, 'an object')
  const { readonly, ...capability } = access
  if (readonly !== undefined && typeof readonly !== 'boolean')
    throw invalidOption('access.readonly', readonly, 'true or false')
  check(capability, 'access')
  return { ...copied('access', capability), ...(readonly && { readonly }) }
}

/** Any text with something in it. */
export function name(field: string, value: unknown): string {
  if (typeof value === 'string' && value !== '') return value
  throw invalidOption(field, value, 'a text that is not empty')
}

function texts(field: string, value: TextMap): TextMap {
  if (!isObject(value) || !Object.values(value).every((one) => typeof one === 'string'))
    throw invalidOption(field, value, 'an object of texts')
  return { ...value }
}
