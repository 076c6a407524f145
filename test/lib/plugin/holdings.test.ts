import { expect } from 'chai'
import { Holdings } from '../../../lib/plugin/holdings.js'

const node = { type: 'csi-node', name: 'ebs', allocId: 'a' }
const controller = { ...node, type: 'csi-controller' }
const gone = (ref: typeof node, reason: string) => ({ kind: 'deregister', ref, reason })

describe('Holdings', () => {
  it('have everything that is present or was asked for go, once each', () => {
    const holdings = new Holdings()
    holdings.hold(node)
    holdings.leave([controller, node], 'stopping')
    expect(holdings.leaving).to.eql([gone(controller, 'stopping'), gone(node, 'stopping')])
  })

  it('keep what is to be kept', () => {
    const holdings = new Holdings()
    holdings.hold(controller)
    holdings.leave([node], 'configuration changed', [node])
    expect(holdings.leaving).to.eql([gone(controller, 'configuration changed')])
  })

  it('remember what is to go until it is gone, with its first reason', () => {
    const holdings = new Holdings()
    holdings.leave([node], 'stopping')
    holdings.leave([node], 'stopped')
    expect(holdings.leaving).to.eql([gone(node, 'stopping')])
    holdings.left(node)
    expect(holdings.leaving).to.eql([])
    holdings.leave([], 'stopped')
    expect(holdings.leaving).to.eql([])
  })

  it('keep nothing of a registration but its names', () => {
    const holdings = new Holdings()
    holdings.hold({ ...node, version: '1' } as typeof node)
    holdings.leave([], 'stopped')
    expect(holdings.leaving).to.eql([gone(node, 'stopped')])
  })
})
