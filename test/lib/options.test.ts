import { expect } from 'chai'
import { PlugstreamError } from '../../lib/errors.js'
import { checkSignal, copied, fieldsOf, takeOptions, type FieldRules, picked } from '../../lib/options.js'

interface Options {
  signal?: AbortSignal
  timeoutMs?: number
}
const fields = fieldsOf<Options>({ signal: true, timeoutMs: true })

function refusal(work: () => unknown): PlugstreamError {
  try {
    work()
  } catch (thrown) {
    expect(thrown).to.be.instanceOf(PlugstreamError).and.include({ code: 'ERR_OPTION_INVALID' })
    return thrown as PlugstreamError
  }
  throw new Error('nothing was refused')
}
const refused = (given: unknown, rules?: FieldRules): [field: unknown, message: string] => {
  const { details, message } = refusal(() => takeOptions('options', given, fields, rules))
  return [details['field'], message]
}

describe('options', () => {
  it('are given back as they are', () => {
    for (const given of [{}, { timeoutMs: 5 }, Object.assign(Object.create(null) as object, { timeoutMs: 5 })])
      expect(takeOptions('options', given, fields)).to.equal(given)
  })

  it('are refused where they are no object', () => {
    for (const [given, shown] of [
      [null, 'null'],
      [undefined, 'undefined'],
      ['text', '"text"'],
      [[], 'a list'],
      [5, '5'],
    ])
      // prettier-ignore
      expect(refused(given)).to.deep.equal(['options', `options is ${String(shown)}; it must be an object`])
  })

  it('are refused for a field that there is not, with the names of those that there are and without its value', () => {
    const words = 'is no field; there are signal, timeoutMs'
    expect(refused({ timeoutMs: 5, timeout: 'hunter2' })).to.deep.equal(['timeout', `timeout ${words}`])
    expect(refused({ toString: 1 }, { below: 'call' })).to.deep.equal(['call.toString', `call.toString ${words}`])
    expect(refused(JSON.parse('{"__proto__":1}'))).to.deep.equal(['__proto__', `__proto__ ${words}`])
  })

  it('are refused with the word of where a value belongs', () => {
    const instead = { password: 'secretsRef has the name of it' }
    const message = 'password is no field; secretsRef has the name of it'
    expect(refused({ password: 'hunter2' }, { instead })).to.deep.equal(['password', message])
    expect(refused({ constructor: 1 }, { instead })[1]).to.include('there are signal')
  })

  it('may have a field that there is not where that is left out, is passed over on purpose, or is of a class', () => {
    class More {
      readonly more = 1
    }
    expect(takeOptions('options', { timeout: undefined }, fields)).to.have.property('timeout')
    expect(takeOptions('options', { more: 1 }, fields, { also: ['more'] })).to.have.property('more')
    expect(takeOptions('options', new More(), fields)).to.have.property('more')
  })
})

describe('what is picked', () => {
  it('are the texts with one of the names, in the order of the names, and nothing that was inherited', () => {
    expect(Object.entries(picked({ c: '3', a: '1', b: '' }, ['a', 'b', 'toString', 'd']))).to.deep.equal([
      ['a', '1'],
      ['b', ''],
    ])
    expect(picked({ a: '1' })).to.deep.equal({})
  })
})

describe('a copy', () => {
  it('has nothing in common with what it is of', () => {
    const given = { list: [{ size: 1n }] }
    const copy = copied('given', given)
    given.list[0]!.size = 2n
    expect(copy).to.deep.equal({ list: [{ size: 1n }] })
  })

  it('is refused of what is no plain data, with the name of the field and nothing of the value', () => {
    for (const value of [{ deep: () => 'hunter2' }, new Proxy({ password: 'hunter2' }, {}), [() => 'hunter2']]) {
      const { details, message } = refusal(() => copied('parameters', value))
      expect(details).to.deep.equal({ field: 'parameters' })
      expect(message).to.match(/^parameters is (an object|a list); it must be plain data/)
    }
  })
})

describe('a signal', () => {
  it('may be left out, and is refused where it is none', () => {
    checkSignal(undefined)
    checkSignal(new AbortController().signal)
    for (const given of [null, {}, new AbortController()])
      expect(refusal(() => checkSignal(given)).details).to.deep.equal({ field: 'signal' })
  })
})
