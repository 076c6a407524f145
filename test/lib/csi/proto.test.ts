import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import { csiProto } from '../../../lib/csi/proto.js'
import { healthProto } from '../../../lib/grpc/proto.js'

/** As much of the reflection of protobufjs as is read here; it comes with the loader, and is no dependency of its own. */
interface Thing {
  name: string
  fullName: string
  parent: Thing | null
  options?: Record<string, unknown>
  nestedArray?: Thing[]
  fieldsArray?: Field[]
  methodsArray?: Method[]
  values?: Record<string, number>
  valuesOptions?: Record<string, Record<string, unknown>>
  resolveAll?(): Thing
}
interface Field extends Thing {
  id: number
  type: string
  resolvedType: Thing | null
  repeated: boolean
  map: boolean
  keyType?: string
  partOf: Thing | null
  extend?: string
}
interface Method extends Thing {
  requestType: string
  responseType: string
  requestStream?: boolean
  responseStream?: boolean
}

const file = (path: string) => fileURLToPath(new URL(`../../../${path}`, import.meta.url))

function reflect(): Thing {
  const fromLoader = createRequire(createRequire(import.meta.url).resolve('@grpc/proto-loader'))
  const { Root } = fromLoader('protobufjs') as { Root: new () => Thing & { loadSync(path: string, o: object): Thing } }
  return new Root().loadSync(file('proto/csi/v1/csi.proto'), { keepCase: true }).resolveAll!()
}

/** A name below `csi.v1` without the package; one of another package whole. */
const shortName = (thing: Thing) => thing.fullName.replace(/^\.csi\.v1\./, '')

function typeOf(field: Field): string {
  const type = field.resolvedType ? shortName(field.resolvedType) : field.type
  if (field.map) return `map<${field.keyType}, ${type}>`
  return field.repeated ? `repeated ${type}` : type
}

function marks(options: Record<string, unknown> | undefined, alpha: string, inherited = false): string {
  const found = []
  if (inherited || options?.[`(${alpha})`] === true) found.push('alpha')
  if (options?.['(csi_secret)'] === true) found.push('secret')
  if (options?.['deprecated'] === true) found.push('removed-in-1.13')
  return found.sort().join(' ')
}

/** Everything below a namespace as rows of the facts. */
function rowsOf(space: Thing): string[] {
  const rows: string[] = []
  const row = (...cells: (string | number)[]) => rows.push(cells.join('\t'))
  for (const thing of space.nestedArray ?? []) {
    const name = shortName(thing)
    if (thing.methodsArray) {
      for (const { name: rpc, ...m } of thing.methodsArray) {
        const [request, response] = [m.requestStream ? 'stream ' : '', m.responseStream ? 'stream ' : '']
        row(
          'rpc',
          `${name}.${rpc}`,
          '',
          request + m.requestType,
          response + m.responseType,
          '',
          marks(m.options, 'alpha_method'),
        )
      }
    } else if (thing.fieldsArray) {
      const alpha = thing.options?.['(alpha_message)'] === true
      if (thing.fieldsArray.length === 0 && !thing.nestedArray?.length)
        row('message', name, '', '(no fields)', '', '', '')
      for (const f of thing.fieldsArray) {
        const oneof = f.partOf ? `oneof ${f.partOf.name}` : ''
        row('field', name, f.id, f.name, typeOf(f), oneof, marks(f.options, 'alpha_field', alpha))
      }
    } else if (thing.values) {
      const alpha = thing.options?.['(alpha_enum)'] === true
      for (const [value, number] of Object.entries(thing.values))
        row('enum', name, number, value, '', '', marks(thing.valuesOptions?.[value], 'alpha_enum_value', alpha))
    } else if ((thing as Field).extend) {
      const f = thing as Field
      row('extension', `.${f.extend}`, f.id, f.name, f.type, '', '')
    }
    rows.push(...rowsOf(thing))
  }
  return rows
}

/** The facts, without the mark of when something came: the wire does not know it. */
const facts = readFileSync(file('test/data/csi-1.13.0-facts.tsv'), 'utf8')
  .trimEnd()
  .split('\n')
  .slice(1)
  .map((line) => {
    const cells = line.split('\t')
    while (cells.length < 7) cells.push('')
    const kept = cells[6]!.split(' ').filter((mark) => mark !== 'since-1.13')
    return [...cells.slice(0, 6), kept.sort().join(' ')].join('\t')
  })

describe('csi.proto', () => {
  const csi = (reflect().nestedArray ?? []).find((n) => n.name === 'csi')!.nestedArray!.find((n) => n.name === 'v1')!
  const rows = rowsOf(csi)
  const ofKind = (all: string[], kind: string) => all.filter((line) => line.startsWith(`${kind}\t`)).sort()

  for (const kind of ['rpc', 'message', 'field', 'enum', 'extension']) {
    it(`holds every ${kind} of CSI 1.13 as the facts have it, and no other`, () => {
      expect(ofKind(facts, kind)).to.not.be.empty
      expect(ofKind(rows, kind)).to.deep.equal(ofKind(facts, kind))
    })
  }

  it('has no row of a kind that is not compared', () => {
    expect(rows.length).to.equal(facts.length)
  })
})

describe('the loaded services', () => {
  it('have the five services and 36 calls of CSI, each under its path', () => {
    const { Identity, Controller, GroupController, SnapshotMetadata, Node } = csiProto()
    const paths = [Identity, Controller, GroupController, SnapshotMetadata, Node]
      .flatMap((service) => Object.values(service.service))
      .map((method) => method.path)
    const expected = ofRpc(facts).map(([service, rpc]) => `/csi.v1.${service}/${rpc}`)
    expect(paths.sort()).to.deep.equal(expected.sort())
    expect(paths).to.have.length(36)
  })

  it('keep int64 exact, name enum values, show the member of a oneof and tell absent wrappers from false', () => {
    const { NodeGetInfo, NodeGetCapabilities } = csiProto().Node.service
    const info = NodeGetInfo.responseSerialize({ node_id: 'n', max_volumes_per_node: '9223372036854775807' })
    expect(NodeGetInfo.responseDeserialize(info)).to.deep.include({
      max_volumes_per_node: '9223372036854775807',
      accessible_topology: null,
    })
    const capabilities = NodeGetCapabilities.responseSerialize({
      capabilities: [{ rpc: { type: 1 } }, { rpc: { type: 77 as 1 } }],
    })
    expect(NodeGetCapabilities.responseDeserialize(capabilities).capabilities).to.deep.equal([
      { rpc: { type: 'STAGE_UNSTAGE_VOLUME' }, type: 'rpc' },
      { rpc: { type: 77 }, type: 'rpc' },
    ])
    const { Probe } = csiProto().Identity.service
    const probe = (ready: { value: boolean } | null) =>
      Probe.responseDeserialize(Probe.responseSerialize({ ready })).ready
    expect([probe(null), probe({ value: false }), probe({ value: true })]).to.deep.equal([
      null,
      { value: false },
      { value: true },
    ])
  })

  it('have the health service under its path', () => {
    const { service } = healthProto().Health
    expect(service.Check.path).to.equal('/grpc.health.v1.Health/Check')
    expect(service.Watch.responseStream).to.equal(true)
    const reply = service.Check.responseSerialize({ status: 'NOT_SERVING' })
    expect([...reply]).to.deep.equal([8, 2])
  })
})

function ofRpc(lines: string[]): [string, string][] {
  return lines
    .filter((line) => line.startsWith('rpc\t'))
    .map((line) => line.split('\t')[1]!.split('.') as [string, string])
}
