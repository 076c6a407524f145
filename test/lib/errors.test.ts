import { expect } from 'chai'
import { abortedError, errorCodes, invalidOption, messageOf, PlugstreamError } from '../../lib/errors.js'
import { readmeTable } from '../support/readme.js'

describe('errors', () => {
  it('have the codes that the README explains, and no others', () => {
    const explained = readmeTable('Errors').flatMap(([codes = '']) => codes.match(/\w+/g) ?? [])
    expect(explained).to.deep.equal([...errorCodes])
  })

  it('are made of what was caught, which they keep as their cause', () => {
    const cause = new Error('disk full')
    const error = PlugstreamError.from(cause, 'ERR_STORE_WRITE', 'saving', { retryable: true, details: { key: 'k' } })
    expect(error).to.deep.include({ code: 'ERR_STORE_WRITE', message: 'saving: disk full', cause, retryable: true })
    expect(error.details).to.deep.equal({ key: 'k' })
    expect(error).to.be.instanceOf(Error).with.property('name', 'PlugstreamError')
  })

  it('stay as they are where they are of this class already', () => {
    const error = new PlugstreamError('ERR_SOCKET', 'taken')
    expect(PlugstreamError.from(error, 'ERR_USAGE', 'anything')).to.equal(error)
    expect(error).to.include({ retryable: false }).and.not.have.own.property('cause')
  })

  it('tell an abort and a timeout from other failures, as signals give them', () => {
    const [aborted, timedOut] = [new DOMException('', 'AbortError'), new DOMException('', 'TimeoutError')]
    expect(PlugstreamError.from(aborted, 'ERR_USAGE', 'waiting')).to.include({
      code: 'ERR_ABORTED',
      message: 'waiting: aborted',
      cause: aborted,
    })
    expect(PlugstreamError.from(timedOut, 'ERR_USAGE', 'waiting')).to.include({
      code: 'ERR_TIMEOUT',
      message: 'waiting: timed out',
    })
  })

  it('tell of an aborted signal by its reason, which is their cause: time that ran out is a timeout, whoever says so', () => {
    const ranOut = new PlugstreamError('ERR_TIMEOUT', 'not within 5 ms')
    const cases: readonly [reason: unknown, code: string, message: string][] = [
      [new DOMException('', 'TimeoutError'), 'ERR_TIMEOUT', 'waiting: timed out'],
      [ranOut, 'ERR_TIMEOUT', 'waiting: timed out'],
      [new DOMException('', 'AbortError'), 'ERR_ABORTED', 'waiting: aborted'],
      [new PlugstreamError('ERR_CLOSED', 'closed'), 'ERR_ABORTED', 'waiting: aborted'],
      ['enough', 'ERR_ABORTED', 'waiting: aborted'],
      [null, 'ERR_ABORTED', 'waiting: aborted'],
    ]
    for (const [reason, code, message] of cases) {
      const error = abortedError('waiting', AbortSignal.abort(reason), { details: { rpc: 'Probe' } })
      expect(error).to.deep.include({ code, message, cause: reason, details: { rpc: 'Probe' } })
    }
  })

  it('are made of what is no error, too', () => {
    for (const thrown of ['text', undefined, null, 7, { toString: () => 'an object' }])
      expect(PlugstreamError.from(thrown, 'ERR_USAGE', 'trying').message).to.equal(`trying: ${String(thrown)}`)
    expect(messageOf(new TypeError('no'))).to.equal('no')
  })

  it('name field, value and what is allowed for a bad value, of which only the beginning is shown', () => {
    const cases: readonly [unknown, string][] = [
      ['', '""'],
      ['a"b', '"a\\"b"'],
      ['x'.repeat(100), `"${'x'.repeat(77)}…"`],
      [undefined, 'undefined'],
      [null, 'null'],
      [-1, '-1'],
      [[1], 'a list'],
      [{ password: 'hunter2' }, 'an object'],
    ]
    for (const [value, shown] of cases) {
      const error = invalidOption('the.field', value, 'something else')
      expect(error).to.deep.include({ code: 'ERR_OPTION_INVALID', details: { field: 'the.field' } })
      expect(error.message).to.equal(`the.field is ${shown}; it must be something else`)
    }
  })
})
