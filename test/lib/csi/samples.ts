import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/** As much of the reflection of protobufjs as is read here; it comes with the loader, and is no dependency of its own. */
interface Field {
  name: string
  type: string
  resolvedType: Type | null
  repeated: boolean
  map: boolean
  partOf: { name: string; oneof: string[] } | null
}
interface Type {
  fullName: string
  fieldsArray: Field[]
  values?: Record<string, number>
}
interface Service {
  methodsArray: { name: string; requestType: string; responseType: string }[]
}
interface Root {
  loadSync(path: string, options: object): Root
  resolveAll(): Root
  lookupType(path: string): Type
  lookupService(path: string): Service
}

type Wire = Record<string, unknown>

function reflect(): Root {
  const fromLoader = createRequire(createRequire(import.meta.url).resolve('@grpc/proto-loader'))
  const { Root } = fromLoader('protobufjs') as { Root: new () => Root }
  const file = fileURLToPath(new URL('../../../proto/csi/v1/csi.proto', import.meta.url))
  return new Root().loadSync(file, { keepCase: true }).resolveAll()
}

const services = ['Identity', 'Controller', 'GroupController', 'SnapshotMetadata', 'Node']

/** Every call of the proto file, and the types of what goes out and comes in. */
export function rpcTypes(): { rpc: string; request: Type; response: Type }[] {
  const root = reflect()
  return services.flatMap((service) =>
    root.lookupService(`csi.v1.${service}`).methodsArray.map(({ name: rpc, requestType, responseType }) => ({
      rpc,
      request: root.lookupType(`csi.v1.${requestType}`),
      response: root.lookupType(`csi.v1.${responseType}`),
    })),
  )
}

/** Makes messages with every field set, and no two values alike. Of a oneof it sets the member at `choice`. */
export class Samples {
  readonly #choice: number
  #count = 0

  constructor(choice: number) {
    this.#choice = choice
  }

  message(type: Type): Wire {
    switch (type.fullName) {
      case '.google.protobuf.Timestamp':
        return { seconds: String(1_700_000_000 + this.#next()), nanos: 123_999_999 }
      case '.google.protobuf.BoolValue':
        return { value: false }
      case '.google.protobuf.Int64Value':
        return { value: this.#scalar('int64') }
    }
    const chosen = type.fieldsArray.filter(
      ({ name, partOf }) => !partOf || partOf.oneof[this.#choice % partOf.oneof.length] === name,
    )
    return Object.fromEntries(chosen.map((field) => [field.name, this.#field(field)]))
  }

  #field(field: Field): unknown {
    if (field.map) return { [`key ${this.#next()}`]: `value ${this.#next()}`, empty: '' }
    return field.repeated ? [this.#value(field), this.#value(field)] : this.#value(field)
  }

  #value({ type, resolvedType }: Field): unknown {
    if (!resolvedType) return this.#scalar(type)
    if (!resolvedType.values) return this.message(resolvedType)
    const names = Object.keys(resolvedType.values).slice(1)
    return names[this.#next() % names.length]
  }

  #scalar(type: string): unknown {
    if (type === 'string') return `/text/${this.#next()}`
    if (type === 'int32') return this.#next()
    if (type === 'int64') return String(2n ** 53n + 1n + BigInt(2 * this.#next()))
    if (type === 'bool') return true
    throw new Error(`there is no sample of ${type}`)
  }

  #next(): number {
    return ++this.#count
  }
}

const renamed: Readonly<Record<string, string>> = {
  creation_time: 'createdAt',
  volume_condition: 'health',
  available_capacity: 'availableBytes',
  maximum_volume_size: 'maximumVolumeBytes',
  minimum_volume_size: 'minimumVolumeBytes',
  starting_offset: 'startingByteOffset',
  health_statuses: 'problems',
}
const ownName = (name: string): string =>
  renamed[name] ?? name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** What a message of the wire is in the words of the client; written apart from it, by rules alone. */
export function inDomain(type: Type, wire: Wire): unknown {
  const own = (): Record<string, unknown> => {
    const fields = type.fieldsArray.filter(({ name }) => name in wire)
    return Object.fromEntries(fields.map((field) => [ownName(field.name), fieldInDomain(field, wire[field.name])]))
  }
  const name = type.fullName.replace('.csi.v1.', '')
  switch (name) {
    case '.google.protobuf.Timestamp':
      return Number(wire['seconds']) * 1_000 + Math.floor((wire['nanos'] as number) / 1e6)
    case '.google.protobuf.Int64Value':
      return BigInt(wire['value'] as string)
    case '.google.protobuf.BoolValue':
      return wire['value']
    case 'Topology':
      return wire['segments']
    case 'VolumeCapability.AccessMode':
      return wire['mode']
    case 'VolumeCondition':
      return { healthy: false, problems: [{ status: 'ABNORMAL', message: wire['message'] }] }
    case 'VolumeHealth':
      return { ...own(), healthy: false }
    case 'ControllerGetCapabilitiesResponse':
    case 'NodeGetCapabilitiesResponse':
    case 'GroupControllerGetCapabilitiesResponse':
      return capabilities(wire, 'rpc')
    case 'GetPluginCapabilitiesResponse':
      return { service: capabilities(wire, 'service'), volumeExpansion: capabilities(wire, 'volume_expansion') }
  }
  const oneof = type.fieldsArray.find((field) => field.partOf && field.name in wire)
  if (!oneof) return own()
  const { [ownName(oneof.name)]: member, ...others } = own()
  return { kind: oneof.name, ...others, ...(member as object) }
}

function fieldInDomain({ map, repeated, type, resolvedType }: Field, value: unknown): unknown {
  if (map) return value
  const one = (wire: unknown): unknown => {
    if (type === 'int64') return BigInt(wire as string)
    return resolvedType && !resolvedType.values ? inDomain(resolvedType, wire as Wire) : wire
  }
  return repeated ? (value as unknown[]).map(one) : one(value)
}

function capabilities(wire: Wire, member: string): object {
  const entries = wire['capabilities'] as Record<string, { type: string } | undefined>[]
  const names = entries.flatMap((entry) => entry[member]?.type ?? [])
  return { names: [...new Set(names)].sort(), unknown: [] }
}
