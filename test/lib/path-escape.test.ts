import { expect } from 'chai'
import fc from 'fast-check'
import { escapePathPart, pathPartLimit } from '../../lib/path-escape.js'

/** Any text, half surrogate pairs, path syntax and letters that differ only in case among them. */
const text = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
  fc
    .array(fc.constantFrom('a', 'A', '.', '..', '/', '~', '\0', 'é', 'e\u0301', '\ud800', 'h', '2f'))
    .map((p) => p.join('')),
  fc.string({ minLength: 100, maxLength: 400 }),
)

describe('escapePathPart', () => {
  it('leaves what is safe everywhere as it is', () => {
    expect(escapePathPart('ebs-csi_1.node')).to.equal('ebs-csi_1.node')
  })

  it('writes everything else as its code', () => {
    expect(escapePathPart('a/b')).to.equal('a~2fb')
    expect(escapePathPart('Ebs')).to.equal('~45bs')
    expect(escapePathPart('é漢')).to.equal('~e9~u6f22')
  })

  it('gives no name that means a directory, and no hidden one', () => {
    expect(escapePathPart('.')).to.equal('~2e')
    expect(escapePathPart('..')).to.equal('~2e.')
    expect(escapePathPart('.ssh')).to.equal('~2essh')
  })

  it('gives a name also for the empty text', () => {
    expect(escapePathPart('')).to.equal('~')
  })

  it('shortens what is too long, and keeps two long texts apart that differ only at their end', () => {
    const [one, two] = [`${'a'.repeat(299)}1`, `${'a'.repeat(299)}2`].map(escapePathPart)
    expect(one).to.have.length.at.most(pathPartLimit)
    expect(one).to.match(/^a{60}~h[0-9a-f]{40}$/)
    expect(one).not.to.equal(two)
  })

  it('keeps long texts apart that differ in half a surrogate pair', () => {
    const [one, two] = [`${'漢'.repeat(60)}\ud800`, `${'漢'.repeat(60)}\ud801`].map(escapePathPart)
    expect(one).not.to.equal(two)
  })

  it('gives any text a name of safe characters within the limit', () => {
    fc.assert(
      fc.property(text, (any) => {
        const escaped = escapePathPart(any)
        expect(escaped).to.match(/^[a-z0-9_~-][a-z0-9._~-]*$/)
        expect(escaped.length).to.be.at.most(pathPartLimit)
      }),
    )
  })

  it('never gives two texts the same name, upper and lower case taken for the same', () => {
    fc.assert(
      fc.property(text, text, (one, two) => {
        fc.pre(one !== two)
        expect(escapePathPart(one).toLowerCase()).not.to.equal(escapePathPart(two).toLowerCase())
      }),
      { numRuns: 2_000 },
    )
  })

  it('never gives neighbours the same name', () => {
    fc.assert(
      fc.property(text, fc.nat(), fc.integer({ min: 0, max: 0xffff }), (one, at, unit) => {
        const cut = at % (one.length + 1)
        const two = one.slice(0, cut) + String.fromCharCode(unit) + one.slice(cut + 1)
        fc.pre(one !== two)
        expect(escapePathPart(one)).not.to.equal(escapePathPart(two))
      }),
      { numRuns: 2_000 },
    )
  })
})
