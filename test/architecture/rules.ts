import { wayTo, type Import } from './imports.js'

/** A direction no import may take. `breaks` gives the words for the report, or nothing where the import is fine. */
export interface Rule {
  name: string
  breaks(one: Import, all: readonly Import[]): string | undefined
}

/** Files of `streams` that are no stage: they compose, hold state, or are types. */
const notStages = [
  'host',
  'registry',
  'main',
  'docker',
  'outlets',
  'present-state',
  'index',
  'values',
  'host-ports',
  'plugin-host',
  'host-volumes',
  'host-announcements',
  'host-replacements',
]

export const isStage = (file: string): boolean =>
  /^streams\/[^/]+\.ts$/.test(file) && !notStages.some((name) => file === `streams/${name}.ts`)

const isFile = (to: string): boolean => /^(lib|streams|test|examples)\//.test(to)
const isPackage = (to: string): boolean => !isFile(to) && !to.startsWith('node:')
/** The outside world: the machine, or somebody else's client. */
const isOutside = (to: string): boolean => to.startsWith('node:') || (isPackage(to) && to !== 'rxjs')
const noun = (file: string): string | undefined => /^lib\/([^/]+)\//.exec(file)?.[1]

/** Where each third-party package may be imported; one that is not here may not be imported at all by what is shipped. */
const homes: Readonly<Record<string, RegExp>> = {
  rxjs: /^(streams|examples|test)\//,
  '@grpc/grpc-js': /^lib\/(csi|grpc)\//,
  '@grpc/proto-loader': /^lib\/(csi|grpc)\//,
  keyv: /^lib\/store\//,
  '@keyv/sqlite': /^lib\/store\//,
  debug: /^lib\/log\.ts$/,
  dockerode: /^lib\/docker\//,
}

/** Where the words of a noun are: its types, and the pure functions that name a value of them (`instanceKey`, `taskKey`). */
const words = ['lib/plugin/plugin.ts', 'lib/task/task.ts']
/** The wire: what every kind of plugin that speaks gRPC stands on. */
const wire = ['call', 'link', 'proto', 'stream-messages'].map((name) => `lib/grpc/${name}.ts`)

/** What of `test` is shipped, as `plugstream/testing` and `plugstream/conformance`. */
const isShipped = (file: string): boolean =>
  /^(lib|streams|test\/testing|test\/conformance)\//.test(file) && !file.endsWith('.test.ts')

const rule = (name: string, forbids: (one: Import) => boolean): Rule => ({
  name,
  breaks: (one) => (forbids(one) ? `${one.from} imports ${one.to}` : undefined),
})

export const rules: readonly Rule[] = [
  {
    name: 'no import leads back to where it came from',
    breaks: (one, all) =>
      wayTo(all, one.to, (to) => to === one.from)
        ?.concat(one.to)
        .join(' → '),
  },
  rule(
    'lib and streams do not import test or examples',
    ({ from, to }) => /^(lib|streams)\//.test(from) && /^(test|examples)\//.test(to),
  ),
  rule('lib does not import streams', ({ from, to }) => from.startsWith('lib/') && to.startsWith('streams/')),
  rule(
    'a noun of lib imports only the words of another noun, and the wire',
    ({ from, to, typeOnly }) =>
      !typeOnly &&
      noun(from) !== undefined &&
      noun(to) !== undefined &&
      noun(from) !== noun(to) &&
      ![...words, ...wire].includes(to),
  ),
  rule(
    'what all of lib stands on imports only types of a noun',
    ({ from, to, typeOnly }) => !typeOnly && /^lib\/[^/]+$/.test(from) && noun(to) !== undefined,
  ),
  rule(
    'only an adapter imports its third-party client',
    ({ from, to }) => isPackage(to) && to in homes && /^(lib|streams)\//.test(from) && !homes[to]!.test(from),
  ),
  rule(
    'what is shipped imports no other package',
    ({ from, to }) => isShipped(from) && isPackage(to) && !(to in homes),
  ),
  rule(
    'streams import no builtin of Node',
    ({ from, to }) => from.startsWith('streams/') && from !== 'streams/main.ts' && to.startsWith('node:'),
  ),
  rule(
    'a stage imports of streams only operators, values and ports',
    ({ from, to }) =>
      isStage(from) && to.startsWith('streams/') && !/^streams\/(operators\/.+|values|host-ports)\.ts$/.test(to),
  ),
  rule(
    'an operator imports only rxjs, operators, what all of lib stands on, and types',
    ({ from, to, typeOnly }) =>
      from.startsWith('streams/operators/') &&
      to !== 'rxjs' &&
      !typeOnly &&
      !/^(streams\/operators\/.+|lib\/[^/]+)$/.test(to),
  ),
  {
    name: 'nothing a stage or an operator imports reaches an adapter',
    breaks: ({ from, to }, all) =>
      (isStage(from) || from.startsWith('streams/operators/')) && to.startsWith('lib/')
        ? wayTo(all, to, isOutside)?.join(' → ')
        : undefined,
  },
  rule(
    'an example imports the package by its name, rxjs, gRPC and Node',
    ({ from, to }) =>
      from.startsWith('examples/') &&
      !to.startsWith('node:') &&
      !to.startsWith('examples/') &&
      !['rxjs', 'plugstream', '@grpc/grpc-js', '@grpc/proto-loader'].includes(to),
  ),
]
