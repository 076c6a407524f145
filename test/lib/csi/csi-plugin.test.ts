import { expect } from 'chai'
import { parseCsiPlugin } from '../../../lib/csi/csi-plugin.js'
import { csiKind } from '../../../lib/csi/kind.js'
import { PlugstreamError } from '../../../lib/errors.js'
import type { CsiPluginConfig, PluginTask } from '../../../lib/task/task.js'

const minimal = { id: 'ebs', type: 'node' } as const

describe('parseCsiPlugin', () => {
  it('takes what must be there, and adds nothing', () => {
    expect(parseCsiPlugin(minimal)).to.deep.equal(minimal)
  })

  it('reads our words, and Nomad’s words and units, to the same', () => {
    const config: CsiPluginConfig = {
      id: 'ebs',
      type: 'monolith',
      mountDir: '/sockets',
      stagePublishBaseDir: '/volumes',
      healthTimeoutMs: 90_000,
      initTimeoutMs: 600_000,
    }
    const nomad = {
      id: 'ebs',
      type: 'monolith',
      mount_dir: '/sockets',
      stage_publish_base_dir: '/volumes',
      health_timeout: '1m30s',
      init_timeout: '10m',
    }
    expect(parseCsiPlugin(config)).to.deep.equal(config)
    expect(parseCsiPlugin(nomad)).to.deep.equal(config)
  })

  it('takes a field without a value for one that is left out', () => {
    expect(parseCsiPlugin({ ...minimal, mountDir: undefined, health_timeout: null })).to.deep.equal(minimal)
  })

  const durations: [string, number][] = [
    ['30s', 30_000],
    ['1m30s', 90_000],
    ['1.5h', 5_400_000],
    ['500ms', 500],
    ['1h0m0s', 3_600_000],
    ['2147483.647s', 2 ** 31 - 1],
  ]
  for (const [text, ms] of durations) {
    it(`reads a health_timeout of ${text} as ${ms} ms`, () => {
      expect(parseCsiPlugin({ ...minimal, health_timeout: text }).healthTimeoutMs).to.equal(ms)
    })
  }

  const ids = ['a/b', '..', '.', '/', 'x'.repeat(300), 'übung-日本-🦊', ' ', 'a b', '__proto__', 'C:\\x']
  for (const id of ids) {
    it(`takes the id ${JSON.stringify(id.slice(0, 20))} as it is: who makes a path of it escapes it`, () => {
      expect(parseCsiPlugin({ ...minimal, id }).id).to.equal(id)
    })
  }

  const paths: [string, string][] = [
    ['/csi/', '/csi'],
    ['//a///b/', '/a/b'],
    ['/a/./b', '/a/b'],
    ['/a..b/...', '/a..b/...'],
  ]
  for (const [given, read] of paths) {
    it(`reads the path ${given} as ${read}`, () => {
      expect(parseCsiPlugin({ ...minimal, mountDir: given }).mountDir).to.equal(read)
    })
  }

  it('takes a base directory that only begins with the letters of the mount directory', () => {
    const config = { ...minimal, mountDir: '/csi', stagePublishBaseDir: '/csilocal' }
    expect(parseCsiPlugin(config)).to.deep.equal(config)
  })

  it('takes a mount directory inside the base directory', () => {
    const config = { ...minimal, mountDir: '/local/csi/sockets' }
    expect(parseCsiPlugin(config)).to.deep.equal(config)
  })

  const refused: [string, unknown, string][] = [
    ['no block', undefined, 'csiPlugin'],
    ['null', null, 'csiPlugin'],
    ['a text', 'ebs', 'csiPlugin'],
    ['a list', [minimal], 'csiPlugin'],
    ['no id', { type: 'node' }, 'csiPlugin.id'],
    ['an empty id', { ...minimal, id: '' }, 'csiPlugin.id'],
    ['an id with NUL', { ...minimal, id: 'a\0b' }, 'csiPlugin.id'],
    ['an id with half a character', { ...minimal, id: 'a\ud800b' }, 'csiPlugin.id'],
    ['an id that is a number', { ...minimal, id: 7 }, 'csiPlugin.id'],
    ['no type', { id: 'ebs' }, 'csiPlugin.type'],
    ['an unknown type', { ...minimal, type: 'csi-node' }, 'csiPlugin.type'],
    ['a type in other letters', { ...minimal, type: 'Node' }, 'csiPlugin.type'],
    ['an unknown field', { ...minimal, mountdir: '/csi' }, 'csiPlugin.mountdir'],
    ['an unknown field without a value', { ...minimal, plugin_id: undefined }, 'csiPlugin.plugin_id'],
    ['a field of every object', { ...minimal, constructor: 1 }, 'csiPlugin.constructor'],
    ['a field under both its names', { ...minimal, mountDir: '/a', mount_dir: '/a' }, 'csiPlugin.mount_dir'],
    ['a relative path', { ...minimal, mountDir: 'csi' }, 'csiPlugin.mountDir'],
    ['an empty path', { ...minimal, mount_dir: '' }, 'csiPlugin.mount_dir'],
    ['the root', { ...minimal, stagePublishBaseDir: '//' }, 'csiPlugin.stagePublishBaseDir'],
    ['a path with ..', { ...minimal, mountDir: '/a/../b' }, 'csiPlugin.mountDir'],
    ['a path with NUL', { ...minimal, mountDir: '/a\0' }, 'csiPlugin.mountDir'],
    ['a path that is none', { ...minimal, mountDir: 7 }, 'csiPlugin.mountDir'],
    ['both directories the same', { ...minimal, stagePublishBaseDir: '/csi' }, 'csiPlugin.stagePublishBaseDir'],
    ['the same, written otherwise', { ...minimal, stagePublishBaseDir: '/./csi/' }, 'csiPlugin.stagePublishBaseDir'],
    ['the base directory inside', { ...minimal, stage_publish_base_dir: '/csi/x' }, 'csiPlugin.stage_publish_base_dir'],
    ['the default base directory inside', { ...minimal, mountDir: '/local' }, 'csiPlugin.mountDir'],
    ['a timeout of 0', { ...minimal, healthTimeoutMs: 0 }, 'csiPlugin.healthTimeoutMs'],
    ['a negative timeout', { ...minimal, initTimeoutMs: -1 }, 'csiPlugin.initTimeoutMs'],
    ['a timeout that is no number', { ...minimal, healthTimeoutMs: NaN }, 'csiPlugin.healthTimeoutMs'],
    ['an endless timeout', { ...minimal, healthTimeoutMs: Infinity }, 'csiPlugin.healthTimeoutMs'],
    ['a timeout no timer can wait', { ...minimal, healthTimeoutMs: 2 ** 31 }, 'csiPlugin.healthTimeoutMs'],
    ['the same in hours', { ...minimal, health_timeout: '597h' }, 'csiPlugin.health_timeout'],
    ['a text where ms are meant', { ...minimal, healthTimeoutMs: '30s' }, 'csiPlugin.healthTimeoutMs'],
    ['a number without a unit', { ...minimal, health_timeout: 30 }, 'csiPlugin.health_timeout'],
    ['a text without a unit', { ...minimal, health_timeout: '30' }, 'csiPlugin.health_timeout'],
    ['a unit that is none', { ...minimal, health_timeout: '30x' }, 'csiPlugin.health_timeout'],
    ['an empty duration', { ...minimal, health_timeout: '' }, 'csiPlugin.health_timeout'],
    ['a negative duration', { ...minimal, health_timeout: '-30s' }, 'csiPlugin.health_timeout'],
    ['a duration of nothing', { ...minimal, health_timeout: '0s' }, 'csiPlugin.health_timeout'],
  ]
  for (const [what, block, field] of refused) {
    it(`refuses ${what}, naming ${field}`, () => {
      const failure = thrown(() => parseCsiPlugin(block))
      expect(failure.code).to.equal('ERR_OPTION_INVALID')
      expect(failure.details['field']).to.equal(field)
      expect(failure.message).to.match(
        new RegExp(`^${field.replaceAll('.', '\\.')} is (no field; there are|.+; it must be) .+`),
      )
    })
  }
})

describe('the configuration of a task with a CSI plugin', () => {
  const task: PluginTask = { allocId: 'a', taskName: 't', isolation: 'none' }
  const { configure } = csiKind()

  it('is the same from the shorthand and from the general form, with the defaults filled in', () => {
    const expected = {
      id: 'ebs',
      types: ['csi-node'],
      healthTimeoutMs: 30_000,
      initTimeoutMs: 300_000,
      socketName: 'csi.sock',
      mountDir: '/csi',
      volumeDir: '/local/csi',
      endpointVariable: 'CSI_ENDPOINT',
      overlaps: false,
    }
    expect(configure({ ...task, csiPlugin: minimal })).to.deep.equal(expected)
    expect(configure({ ...task, plugin: { kind: 'csi', ...minimal } })).to.deep.equal(expected)
  })

  it('keeps what is given', () => {
    const csiPlugin = { ...minimal, mountDir: '/a', stagePublishBaseDir: '/b', healthTimeoutMs: 1, initTimeoutMs: 2 }
    expect(configure({ ...task, csiPlugin })).to.deep.include({
      mountDir: '/a',
      volumeDir: '/b',
      healthTimeoutMs: 1,
      initTimeoutMs: 2,
    })
  })

  it('registers a controller as one, a node as one, a monolith as both, the controller first', () => {
    const types = (['controller', 'node', 'monolith'] as const).map((type) => {
      return configure({ ...task, csiPlugin: { id: 'ebs', type } }).types
    })
    expect(types).to.deep.equal([['csi-controller'], ['csi-node'], ['csi-controller', 'csi-node']])
    expect(csiKind().types).to.deep.equal(['csi-controller', 'csi-node'])
  })

  const refused: [string, Partial<PluginTask>, string][] = [
    ['neither form', {}, 'csiPlugin'],
    ['both forms', { csiPlugin: minimal, plugin: { kind: 'csi', ...minimal } }, 'plugin'],
    ['another kind', { plugin: { kind: 'toy', ...minimal } }, 'plugin.kind'],
    ['a bad field of the general form', { plugin: { kind: 'csi', ...minimal, type: 'x' } }, 'plugin.type'],
    ['a bad field of the shorthand', { csiPlugin: { ...minimal, id: '' } }, 'csiPlugin.id'],
  ]
  for (const [what, part, field] of refused) {
    it(`is refused for ${what}, naming ${field}`, () => {
      const failure = thrown(() => configure({ ...task, ...part }))
      expect(failure.code).to.equal('ERR_OPTION_INVALID')
      expect(failure.details['field']).to.equal(field)
    })
  }
})

function thrown(run: () => unknown): PlugstreamError {
  try {
    run()
  } catch (failure) {
    expect(failure).to.be.instanceOf(PlugstreamError)
    return failure as PlugstreamError
  }
  throw new Error('nothing was thrown')
}
