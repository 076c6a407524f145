import { expect } from 'chai'
import { NameHolders } from '../../../lib/plugin/name-holders.js'

describe('the holders of names', () => {
  let names: NameHolders
  let heard: string[]
  beforeEach(() => {
    names = new NameHolders()
    heard = []
    names.onChange((name) => heard.push(name))
  })

  it('are the first who came, each of its own name', () => {
    expect([names.take('n', 'a'), names.take('n', 'b'), names.take('m', 'b')]).to.deep.equal(['a', 'a', 'b'])
    expect(names.take('n', 'a')).to.equal('a')
  })

  it('are there when they have confirmed it', () => {
    names.take('n', 'a')
    expect([names.holder('n'), heard]).to.deep.equal([undefined, []])
    names.confirm('n', 'a')
    expect([names.holder('n'), heard]).to.deep.equal(['a', ['n']])
    names.take('n', 'a')
    expect(names.holder('n')).to.equal('a')
  })

  it('lose the name to the next who takes it when they are doubted, and only then', () => {
    names.take('n', 'a')
    names.doubt('n', 'a')
    expect(heard).to.deep.equal(['n'])
    expect([names.take('n', 'a'), names.take('n', 'b')]).to.deep.equal(['a', 'a'])
    names.doubt('n', 'a')
    expect([names.take('n', 'b'), names.take('n', 'a')]).to.deep.equal(['b', 'b'])
  })

  it('leave it to nobody in particular', () => {
    names.take('n', 'a')
    names.leave('n', 'a')
    expect([names.take('n', 'b'), heard]).to.deep.equal(['b', ['n']])
  })

  it('are not changed by anybody else', () => {
    names.take('n', 'a')
    names.confirm('n', 'a')
    heard.length = 0
    names.leave('n', 'b')
    names.doubt('n', 'b')
    names.confirm('m', 'b')
    expect([names.holder('n'), names.take('n', 'b'), heard]).to.deep.equal(['a', 'a', []])
  })

  it('are told to who listens, until he leaves, in the middle of it too', () => {
    const stop = names.onChange((name) => heard.push(`other ${name}`))
    names.onChange(() => stop())
    names.take('n', 'a')
    names.confirm('n', 'a')
    names.leave('n', 'a')
    expect(heard).to.deep.equal(['n', 'other n', 'n'])
  })
})
