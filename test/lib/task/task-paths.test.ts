import { expect } from 'chai'
import { socketPathLimitBytes } from '../../../lib/defaults.js'
import { PlugstreamError } from '../../../lib/errors.js'
import { socketPathFor, taskOptions, taskPaths } from '../../../lib/task/task-paths.js'
import { config, task } from './plugin-task.js'

const fileLengthBytes = '/csi/plugins/a/t/csi.sock'.length

/** A state directory with which the natural socket path of alloc `a`, task `t` has exactly this many bytes. */
function stateDirFor(socketPathBytes: number): string {
  return `/${'s'.repeat(socketPathBytes - fileLengthBytes - 1)}`
}

describe('taskPaths', () => {
  it('names the socket directory by alloc and task, and the volume root by plugin id alone', () => {
    expect(taskPaths('/state', 'csi', config({ id: 'ebs' }), task({ allocId: 'a1', taskName: 'driver' }))).to.eql({
      volumeRoot: '/state/csi/volumes/ebs',
      socketDirectory: '/state/csi/plugins/a1/driver',
      socketPath: '/state/csi/plugins/a1/driver/csi.sock',
    })
  })

  it('stays below the state directory whatever the names are', () => {
    const paths = taskPaths('/state', '../k', config({ id: '../../etc' }), task({ allocId: '..', taskName: '/root' }))
    expect(paths.volumeRoot).to.match(/^\/state\/[^/]+\/volumes\/[^/]+$/)
    expect(paths.socketPath).to.match(/^\/state\/[^/]+\/plugins\/[^/.][^/]*\/[^/]+\/csi\.sock$/)
  })

  it('keeps tasks apart whose names join to the same text', () => {
    const one = taskPaths('/state', 'csi', config(), task({ allocId: 'a/b', taskName: 'c' }))
    const two = taskPaths('/state', 'csi', config(), task({ allocId: 'a', taskName: 'b/c' }))
    expect(one.socketPath).not.to.equal(two.socketPath)
  })

  it('accepts a socket path of exactly the limit', () => {
    const { socketPath } = taskPaths(stateDirFor(socketPathLimitBytes), 'csi', config(), task())
    expect(Buffer.byteLength(socketPath)).to.equal(socketPathLimitBytes)
    expect(socketPath).to.match(/\/csi\/plugins\/a\/t\/csi\.sock$/)
  })

  it('goes to the short directory with one byte more', () => {
    // The alloc grows, not the state directory: the short path needs the room.
    const stateDir = '/s'
    const allocId = 'a'.repeat(socketPathLimitBytes + 1 - `${stateDir}/csi/plugins//t/csi.sock`.length)
    const { socketPath } = taskPaths(stateDir, 'csi', config(), task({ allocId }))
    expect(socketPath).to.match(/^\/s\/s\/[0-9a-f]{20}\/csi\.sock$/)
  })

  it('counts bytes, not characters', () => {
    const stateDir = `/${'é'.repeat(20)}`
    const allocId = 'a'.repeat(socketPathLimitBytes + 1 - Buffer.byteLength(`${stateDir}/csi/plugins//t/csi.sock`))
    const paths = taskPaths(stateDir, 'csi', config(), task({ allocId }))
    expect(paths.socketPath).to.include('/s/')
    expect(Buffer.byteLength(paths.socketPath)).to.be.at.most(socketPathLimitBytes)
  })

  it('gives two tasks with long names that share 107 bytes two short directories', () => {
    const allocId = 'a'.repeat(110)
    const one = taskPaths('/state', 'csi', config(), task({ allocId: `${allocId}1` }))
    const two = taskPaths('/state', 'csi', config(), task({ allocId: `${allocId}2` }))
    expect(one.socketPath).not.to.equal(two.socketPath)
  })

  it('refuses with the length and the limit where the short path is too long as well', () => {
    const lengthBytes = 110 + '/s/0123456789abcdef0123/csi.sock'.length
    expect(() => taskPaths(`/${'s'.repeat(109)}`, 'csi', config(), task()))
      .to.throw(PlugstreamError, new RegExp(`${lengthBytes} bytes.*${socketPathLimitBytes}.*stateDir`))
      .that.deep.includes({ code: 'ERR_SOCKET_PATH' })
  })

  it('gives the same answer for a relative and an absolute state directory', () => {
    expect(taskPaths('state', 'csi', config(), task())).to.eql(
      taskPaths(`${process.cwd()}/state`, 'csi', config(), task()),
    )
  })

  it('is what socketPathFor tells', () => {
    expect(socketPathFor('/state', 'csi', config(), task())).to.equal('/state/csi/plugins/a/t/csi.sock')
  })
})

describe('taskOptions', () => {
  it('names the volume root as host and task see it', () => {
    expect(taskOptions('/state', 'csi', config({ id: 'ebs' }), task({ isolation: 'image' }))).to.eql({
      mountPoint: '/state/csi/volumes/ebs',
      containerMountPoint: '/local/csi',
      taskName: 't',
    })
  })

  it('gives a task without isolation the host path', () => {
    const options = taskOptions('/state', 'csi', config({ id: 'ebs' }), task({ isolation: 'none' }))
    expect(options.containerMountPoint).to.equal('/state/csi/volumes/ebs')
  })
})
