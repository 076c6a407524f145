import { expect } from 'chai'
import { socketChanges } from '../../../lib/plugin/socket-changes.js'
import type { DirectorySight } from '../../../lib/plugin/socket.js'

const nothing = { known: new Map<string, string>(), unseen: [] }
const sight = (sockets: Record<string, string>, ...unseen: string[]): DirectorySight => ({
  sockets: Object.entries(sockets).map(([socketPath, identity]) => ({ socketPath, identity })),
  unseen: unseen.map((path) => ({ path, description: 'EACCES' })),
})

describe('the changes in a directory of sockets', () => {
  it('are what came, what went and what is another one', () => {
    const first = socketChanges(nothing, sight({ '/r/a': '1', '/r/b': '1', '/r/c': '1' }))
    expect(first.changes.map(({ socketPath }) => socketPath)).to.deep.equal(['/r/a', '/r/b', '/r/c'])
    const second = socketChanges(first, sight({ '/r/a': '1', '/r/b': '2', '/r/d': '1' }))
    expect(second.changes).to.deep.equal([
      { socketPath: '/r/b', identity: '2' },
      { socketPath: '/r/d', identity: '1' },
      { socketPath: '/r/c', identity: undefined },
    ])
    expect(socketChanges(second, sight({ '/r/a': '1', '/r/b': '2', '/r/d': '1' })).changes).to.deep.equal([])
  })

  it('are none of what cannot be seen', () => {
    const first = socketChanges(nothing, sight({ '/r/a': '1', '/r/s/b': '1', '/r/sb': '1' }))
    const second = socketChanges(first, sight({}, '/r/s', '/r/a'))
    expect(second.changes).to.deep.equal([{ socketPath: '/r/sb', identity: undefined }])
    const third = socketChanges(second, sight({ '/r/a': '1', '/r/s/b': '2' }))
    expect(third.changes).to.deep.equal([{ socketPath: '/r/s/b', identity: '2' }])
  })

  it('name once what cannot be seen, and again after it could be', () => {
    const first = socketChanges(nothing, sight({}, '/r'))
    const second = socketChanges(first, sight({}, '/r', '/r/s'))
    const last = socketChanges(socketChanges(second, sight({})), sight({}, '/r'))
    expect([first, second, last].map(({ newlyUnseen }) => newlyUnseen.map(({ path }) => path))).to.deep.equal([
      ['/r'],
      ['/r/s'],
      ['/r'],
    ])
  })
})
