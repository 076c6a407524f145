import { expect } from 'chai'
import { importsOf } from './imports.js'
import { rules } from './rules.js'
import { projectSources, type Sources } from './sources.js'

/** Every rule that the sources break, as `rule: import`. */
function broken(sources: Sources): { rule: string; words: string }[] {
  const all = importsOf(sources)
  return all.flatMap((one) =>
    rules.flatMap((rule) => {
      const words = rule.breaks(one, all)
      return words === undefined ? [] : [{ rule: rule.name, words }]
    }),
  )
}

/** What must break the rule of the same row, and nothing else: file → its imports. */
const bad: [rule: string, files: Record<string, string>][] = [
  [
    'no import leads back to where it came from',
    {
      'streams/operators/a.ts': `import { b } from './b.js'`,
      'streams/operators/b.ts': `export * from './c.js'`,
      'streams/operators/c.ts': `const { a } = await import('./a.js')`,
    },
  ],
  ['lib and streams do not import test or examples', { 'lib/a.ts': `import type { B } from '../test/fakes/b.js'` }],
  ['lib and streams do not import test or examples', { 'streams/host.ts': `import { b } from '../examples/b.js'` }],
  ['lib does not import streams', { 'lib/store/a.ts': `import type { B } from '../../streams/values.js'` }],
  [
    'a noun of lib imports only the words of another noun, and the wire',
    { 'lib/store/a.ts': `import { b } from '../plugin/b.js'` },
  ],
  [
    'a noun of lib imports only the words of another noun, and the wire',
    { 'lib/store/a.ts': `export { b } from '../plugin/b.js'` },
  ],
  [
    'a noun of lib imports only the words of another noun, and the wire',
    { 'lib/store/a.ts': `import { type B } from '../plugin/b.js'` },
  ],
  ['what all of lib stands on imports only types of a noun', { 'lib/errors.ts': `import { b } from './plugin/b.js'` }],
  ['only an adapter imports its third-party client', { 'lib/plugin/a.ts': `import { of } from 'rxjs'` }],
  ['only an adapter imports its third-party client', { 'lib/plugin/a.ts': `import '@grpc/grpc-js'` }],
  ['only an adapter imports its third-party client', { 'lib/task/a.ts': `import type { K } from 'keyv'` }],
  ['only an adapter imports its third-party client', { 'lib/csi/a.ts': `import('@keyv/sqlite')` }],
  ['only an adapter imports its third-party client', { 'streams/host.ts': `import debug from 'debug'` }],
  ['what is shipped imports no other package', { 'lib/store/a.ts': `import sqlite from 'sqlite3/lib/sqlite3.js'` }],
  ['what is shipped imports no other package', { 'test/conformance/a.ts': `import { expect } from 'chai'` }],
  ['streams import no builtin of Node', { 'streams/host.ts': `import { hostname } from 'os'` }],
  ['a stage imports of streams only operators, values and ports', { 'streams/a.ts': `import { b } from './b.js'` }],
  [
    'a stage imports of streams only operators, values and ports',
    { 'streams/a.ts': `import type { B } from './host.js'` },
  ],
  [
    'an operator imports only rxjs, operators, what all of lib stands on, and types',
    { 'streams/operators/a.ts': `import { b } from '../values.js'` },
  ],
  [
    'nothing a stage or an operator imports reaches an adapter',
    {
      'streams/a.ts': `import { b } from '../lib/plugin/b.js'`,
      'lib/plugin/b.ts': `import { c } from './c.js'`,
      'lib/plugin/c.ts': `import { readFile } from 'node:fs/promises'`,
    },
  ],
  [
    'nothing a stage or an operator imports reaches an adapter',
    { 'streams/a.ts': `type B = import('../lib/csi/b.js').B`, 'lib/csi/b.ts': `import '@grpc/grpc-js'` },
  ],
  [
    'nothing a stage or an operator imports reaches an adapter',
    { 'streams/operators/a.ts': `import type { B } from '../../lib/log.js'`, 'lib/log.ts': `import 'debug'` },
  ],
  [
    'an example imports the package by its name, rxjs, gRPC and Node',
    { 'examples/a.ts': `import { b } from '../lib/b.js'` },
  ],
  ['an example imports the package by its name, rxjs, gRPC and Node', { 'examples/a.ts': `import Keyv from 'chai'` }],
]

/** What breaks no rule. */
const good: Record<string, string> = {
  'lib/log.ts': `import debug from 'debug'; import type { T } from './task/t.js'`,
  'lib/plugin/p.ts': `import { e } from '../errors.js'; import type { T } from '../task/t.js'; import { q } from './q.js'`,
  'lib/csi/c.ts': `import { Client } from '@grpc/grpc-js'; import { loadSync } from '@grpc/proto-loader'; import 'node:fs'`,
  'lib/csi/w.ts': `import { link } from '../grpc/link.js'; import { call } from '../grpc/call.js'`,
  'lib/store/k.ts': `import { instanceKey } from '../plugin/plugin.js'; import Keyv from 'keyv'; import KeyvSqlite from '@keyv/sqlite'; import { log } from '../log.js'`,
  'streams/operators/o.ts': `import { map } from 'rxjs/operators'; import { e } from '../../lib/errors.js'; import type { V } from '../values.js'`,
  'streams/a.ts': `import { of } from 'rxjs'; import { p } from '../lib/plugin/p.js'; import './operators/o.js'; import './values.js'`,
  'streams/host.ts': `import { a } from './a.js'; import { c } from '../lib/csi/c.js'`,
  'streams/main.ts': `import { parseArgs } from 'node:util'`,
  'examples/e.ts': `import { openHost } from 'plugstream'; import { csi } from 'plugstream/csi'; import { of } from 'rxjs'; import 'node:os'`,
  'test/streams/a.test.ts': `import { expect } from 'chai'; import { a } from '../../streams/a.js'`,
}

describe('import directions', () => {
  it('are kept by the whole project', () => {
    expect(broken(projectSources('lib', 'streams', 'test', 'examples'))).to.deep.equal([])
  })

  it('let pass what the layout is made of', () => {
    expect(broken(new Map(Object.entries(good)))).to.deep.equal([])
  })

  it('have an example that breaks each of them', () => {
    expect(new Set(bad.map(([rule]) => rule))).to.deep.equal(new Set(rules.map((rule) => rule.name)))
  })

  for (const [rule, files] of bad) {
    it(`refuse ${Object.entries(files).flat().join(': ')}`, () => {
      const found = broken(new Map(Object.entries(files)))
      expect(found.map((one) => one.rule)).to.include(rule)
      expect(new Set(found.map((one) => one.rule))).to.have.length(1)
    })
  }
})
