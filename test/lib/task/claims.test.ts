import { expect } from 'chai'
import { PlugstreamError } from '../../../lib/errors.js'
import { TaskClaims } from '../../../lib/task/claims.js'

const one = { allocId: 'a', taskName: 'one' }
const two = { allocId: 'a', taskName: 'two' }
const node = { type: 'csi-node', name: 'ebs', allocId: 'a' }
const controller = { type: 'csi-controller', name: 'ebs', allocId: 'a' }

describe('TaskClaims', () => {
  it('refuses an instance that another task of the alloc claims, and names both tasks', () => {
    const claims = new TaskClaims()
    claims.claim(one, [node])
    expect(() => claims.claim(two, [node]))
      .to.throw(PlugstreamError, /task two of alloc a claims csi-node ebs, which task one/)
      .that.deep.includes({ code: 'ERR_PLUGIN_CONFLICT' })
    expect(claims.holder(node)).to.eql(one)
  })

  it('claims all or nothing', () => {
    const claims = new TaskClaims()
    claims.claim(one, [node])
    expect(() => claims.claim(two, [controller, node])).to.throw(PlugstreamError)
    expect(claims.holder(controller)).to.equal(undefined)
  })

  it('lets a task claim the same again', () => {
    const claims = new TaskClaims()
    claims.claim(one, [node])
    claims.claim(one, [node])
    expect(claims.holder(node)).to.eql(one)
  })

  it('gives back what a task does not claim any more', () => {
    const claims = new TaskClaims()
    claims.claim(one, [controller, node])
    claims.claim(one, [node])
    claims.claim(two, [controller])
    expect(claims.holder(controller)).to.eql(two)
  })

  it('keeps what a task held when its new claim is refused', () => {
    const claims = new TaskClaims()
    claims.claim(one, [node])
    claims.claim(two, [controller])
    expect(() => claims.claim(two, [node])).to.throw(PlugstreamError)
    expect(claims.holder(controller)).to.eql(two)
  })

  it('gives everything back at release, any number of times', () => {
    const claims = new TaskClaims()
    claims.claim(one, [controller, node])
    claims.release(one)
    claims.release(one)
    claims.claim(two, [controller, node])
    expect(claims.holder(node)).to.eql(two)
  })

  it('lets another alloc claim the same plugin', () => {
    const claims = new TaskClaims()
    claims.claim(one, [node])
    claims.claim({ allocId: 'b', taskName: 'one' }, [{ ...node, allocId: 'b' }])
    expect(claims.holder(node)).to.eql(one)
  })

  it('keeps no more of a task than its names', () => {
    const claims = new TaskClaims()
    const task = { ...one, env: { TOKEN: 'x' } }
    claims.claim(task, [node])
    expect(claims.holder(node)).to.eql(one)
  })
})
