import { expect } from 'chai'
import { ignoreElements, map, Observable, switchMap, throwError, timer } from 'rxjs'
import { PlugstreamError } from '../../lib/errors.js'
import type { PluginFacts } from '../../lib/plugin/fingerprint.js'
import type { ReplacementRequest, ReplacementWord } from '../../streams/replacements.js'
import type { Connection } from '../../streams/values.js'
import { marbles } from '../testing/marbles.js'
import { refOf, request, World, type Script } from './replacing.js'
import { fakeConnection, lasting } from './support/connection.js'

/** What comes of one request within a second. */
function logOf(script: Script, overrides: Partial<ReplacementRequest> = {}): string[] {
  return marbles((helpers) => {
    const world = new World(helpers, script)
    const request$ = helpers.cold('r', { r: request(overrides) })
    helpers.expectObservable(world.replace(request$).pipe(ignoreElements()), '^ 1s !').toBe('-')
    helpers.flush()
    return world.log
  })
}

const phaseOf = (word: ReplacementWord): string => ('state' in word ? word.state.phase.charAt(0) : 'o')

/** A node plugin that can do one thing, besides what is given. */
const facts = (overrides: Partial<PluginFacts['node']> = {}): PluginFacts => ({
  requiresControllerPlugin: false,
  requiresTopologies: false,
  node: { names: ['STAGE_UNSTAGE_VOLUME'], unknown: [], id: 'n1', ...overrides },
})

describe('replacements', () => {
  it('never: says nothing where nothing is asked for', () =>
    marbles((helpers) => {
      const request$ = helpers.cold<ReplacementRequest>('-')
      helpers.expectObservable(new World(helpers).replace(request$), '^--!').toBe('-')
      helpers.expectSubscribed(request$, '^--!')
    }))

  it('empty: ends with its source', () =>
    marbles((helpers) => {
      helpers.expectObservable(new World(helpers).replace(helpers.cold<ReplacementRequest>('--|'))).toBe('--|')
    }))

  it('one: starts the new task beside the old one, which is stopped when that has stayed well', () => {
    expect(logOf({})).to.deep.equal([
      '0 starting',
      '0 start new',
      '5 baking', // admitted at 2, healthy 3 later
      '15 stopping',
      '16 stop old', // nothing is in flight any more
      '18 replaced',
    ])
  })

  it('many: replaces several side by side, and ends after the last of them', () =>
    marbles((helpers) => {
      const world = new World(helpers)
      const other = request({ plugin: 'nfs', to: { ...request().to, allocId: 'other' } })
      const request$ = helpers.cold('(rs|)', { r: request(), s: other })
      helpers.expectObservable(world.replace(request$).pipe(ignoreElements())).toBe('18ms |')
      helpers.flush()
      expect(world.log.filter((line) => line.endsWith('start other') || line.endsWith('replaced'))).to.deep.equal([
        '0 start other',
        '18 replaced',
        '18 replaced',
      ])
    }))

  it('source error: ends nothing that is under way', () =>
    marbles((helpers) => {
      const world = new World(helpers)
      const request$ = helpers.cold<ReplacementRequest>('r#', { r: request() })
      helpers.expectObservable(world.replace(request$).pipe(ignoreElements())).toBe('18ms |')
      helpers.flush()
      expect(world.log.at(-1)).to.equal('18 replaced')
    }))

  describe('port error', () => {
    for (const [what, script] of [
      ['a judge that fails', { judge: '--#' }],
      ['health that fails before the new one serves', { healthOf: { new: '--#', old: 'h' } }],
      ['health that fails in the bake time', { healthOf: { new: 'h--#', old: 'h' } }],
    ] as const satisfies [string, Script][])
      it(`port error: goes back after ${what}`, () => {
        const log = logOf(script)
        expect(
          log.filter((line) => / (start|stop) /.test(line)).map((line) => line.replace(/^\d+ /, '')),
        ).to.deep.equal(['start new', 'stop new'])
        expect(log.at(-1)).to.match(/ failed: ERR_PLUGIN_NOT_READY replacing plugin "ebs": /)
      })

    it('port error: waits for no calls where it cannot be told of any', () => {
      expect(logOf({ drained: '#' }).slice(-2)).to.deep.equal(['15 stop old', '17 replaced'])
    })

    it('port error: is replaced also where the registry cannot tell what is gone', () => {
      const deregistered = () => throwError(() => new Error('no registry'))
      expect(logOf({ ports: { deregistered } }).at(-1)).to.equal('18 replaced')
    })

    it('port error: has failed where going back fails', () => {
      const log = logOf({ judge: '--#', healthOf: { new: 'h', old: '#' } }, { upgrade: 'exclusive' })
      expect(log.at(-1)).to.match(/ failed: ERR_PLUGIN_NOT_READY .*: it may not be$/)
    })
  })

  it('early unsubscribe: leaves everything as it is', () =>
    marbles((helpers) => {
      const world = new World(helpers, { judge: '-' })
      const request$ = helpers.cold('r', { r: request({ upgrade: 'exclusive' }) })
      helpers.expectObservable(world.replace(request$).pipe(map(phaseOf)), '^----!').toBe('ho-(so)')
      helpers.expectSubscribed(request$, '^----!')
      helpers.flush()
      expect(world.log).to.deep.equal([
        '0 hold',
        '0 handing-over',
        '1 stop old',
        '3 starting',
        '3 start new',
        '5 let go',
      ])
    }))

  describe('one after the other', () => {
    const exclusive = { upgrade: 'exclusive' } as const

    it('stops the old task when its calls are done, and holds calls back until the new one serves', () => {
      expect(logOf({}, exclusive)).to.deep.equal([
        '0 hold',
        '0 handing-over',
        '1 stop old',
        '3 starting',
        '3 start new',
        '6 let go',
        '6 baking',
        '16 replaced',
      ])
    })

    it('waits no longer than it may for calls that take long', () => {
      expect(logOf({ drained: '-' }, exclusive).slice(0, 4)).to.deep.equal([
        '0 hold',
        '0 handing-over',
        '5 stop old',
        '7 starting',
      ])
    })

    it('holds calls back no longer than it may, and goes on', () => {
      expect(logOf({ stopMs: { old: 80 } }, exclusive)).to.deep.equal([
        '0 hold',
        '0 handing-over',
        '1 stop old',
        '50 let go',
        '81 starting',
        '81 start new',
        '84 baking',
        '94 replaced',
      ])
    })

    it('starts the old one again where the new one fails, once that is gone, and holds calls back until it serves', () => {
      expect(logOf({ events: '-----c' }, exclusive)).to.deep.equal([
        '0 hold',
        '0 handing-over',
        '1 stop old',
        '3 starting',
        '3 start new',
        '5 let go', // and held again in the same turn
        `5 rolling-back: ${crashed}`,
        '5 hold',
        '5 stop new',
        '7 start old',
        '10 let go',
        `10 failed: ${crashed}`,
      ])
    })

    it('starts the old one again where the new one fails in its bake time', () => {
      const log = logOf({ healthOf: { new: 'h--u', old: 'h' } }, exclusive)
      expect(log.slice(6)).to.deep.equal([
        '3 baking',
        `6 rolling-back: ${sick}`,
        '6 hold',
        '6 stop new',
        '8 start old',
        '8 let go',
        `8 failed: ${sick}`,
      ])
    })

    it('never starts the old one while the new one may still be there', () => {
      const log = logOf({ events: '-----c', stopMs: { new: 300 } }, { ...exclusive, timeoutMs: 1_000 })
      expect(log.filter((line) => / (start|stop) /.test(line))).to.deep.equal([
        '1 stop old',
        '3 start new',
        '5 stop new',
        '305 start old',
      ])
    })

    it('has failed where the old one does not come back; calls are not held for ever', () => {
      const log = logOf({ events: '-----c', healthOf: { new: '-', old: '-' } }, exclusive)
      expect(log.slice(-3)).to.deep.equal(['7 start old', '55 let go', `57 failed: ${crashed}`])
    })

    it('does nothing but let calls go where it is given up while they are waited for', () => {
      const aborted$ = timer(3)
      expect(logOf({ drained: '-' }, { ...exclusive, aborted$ })).to.deep.equal([
        '0 hold',
        '0 handing-over',
        '3 let go',
        '3 failed: ERR_ABORTED replacing plugin "ebs": aborted',
      ])
    })
  })

  describe('where the plugins elect a leader', () => {
    const elected = { upgrade: 'elected' } as const

    it('stops the old one as soon as the new one stands by', () => {
      expect(logOf({ standby: '---s', judge: '---------a' }, elected)).to.deep.equal([
        '0 starting',
        '0 start new',
        '3 hold',
        '3 handing-over',
        '4 stop old',
        '12 let go',
        '12 baking',
        '22 replaced',
      ])
    })

    it('stops it also where the new one is ready beside it', () => {
      expect(logOf({}, elected).slice(2, 5)).to.deep.equal(['2 hold', '2 handing-over', '3 stop old'])
    })

    it('takes it for no failure that the new one is not ready in its bake time, and for one that it is sick', () => {
      const healthy = (marble: string): Script => ({ standby: 's', healthOf: { new: marble, old: 'h' } })
      expect(logOf(healthy('h--n'), elected).at(-1)).to.match(/ replaced$/)
      expect(logOf(healthy('h--n'), { upgrade: 'overlap' }).at(-1)).to.match(/ failed: .*it answers not yet$/)
      expect(logOf(healthy('h--u'), elected).at(-1)).to.match(/ failed: .*it is sick$/)
    })

    it('refuses one that stands by and can do less, before the old one is stopped', () => {
      const log = logOf(
        {
          ports: {
            standby: () => timer(1).pipe(map(() => able({ id: 'n2' }))),
            judge: () => lasting(able({})).pipe(ignoreElements()),
          },
        },
        { ...elected, fromHalves: [{ ref: refOf('old'), provider: 'ebs.csi', facts: facts() }] },
      )
      expect(log.slice(2, 4)).to.deep.equal([
        '1 rolling-back: ERR_PLUGIN_CONFLICT plugin "ebs" would lose node id n1 (it would be n2); force replaces it all the same',
        '1 stop new',
      ])
    })

    it('asks one again that stands by and cannot say yet what it can do', () => {
      const identify = () => throwError(() => new PlugstreamError('ERR_CSI_RPC', 'not yet'))
      const log = logOf({ judge: '------a', ports: { standby: () => lasting(fakeConnection({ identify })) } }, elected)
      expect(log.at(-1)).to.match(/ replaced$/)
    })
  })

  describe('the verdict', () => {
    const fromHalves = [{ ref: refOf('old'), provider: 'ebs.csi', facts: facts({ maxVolumes: 8 }) }]
    const judging = (connection: Connection): Script => ({
      ports: { judge: (_, verdict) => timer(2).pipe(switchMap(() => verdict(connection))) },
    })
    const conflict = (lost: string): string =>
      `ERR_PLUGIN_CONFLICT plugin "ebs" would lose ${lost}; force replaces it all the same`

    it('refuses what can do less', () => {
      expect(logOf(judging(able({ maxVolumes: 7 })), { fromHalves })).to.deep.equal([
        '0 starting',
        '0 start new',
        `2 rolling-back: ${conflict('room for 8 volumes (it would be 7)')}`,
        '2 stop new',
        `4 failed: ${conflict('room for 8 volumes (it would be 7)')}`,
      ])
    })

    it('passes what can do as much, and what is forced, which is not even asked', () => {
      expect(logOf(judging(able({ maxVolumes: 8 })), { fromHalves }).at(-1)).to.equal('18 replaced')
      const mute = fakeConnection({ identify: () => new Observable() })
      expect(logOf(judging(mute), { fromHalves, force: true }).at(-1)).to.equal('18 replaced')
    })

    it('refuses a task without a half of the old one before it is started', () => {
      const ref = { ...refOf('old'), type: 'csi-controller' }
      const halves = [...fromHalves, { ref, provider: 'ebs.csi', facts: undefined }]
      expect(logOf({}, { fromHalves: halves })).to.deep.equal([`0 failed: ${conflict('csi-controller')}`])
      expect(logOf({}, { fromHalves: halves, force: true }).at(-1)).to.equal('18 replaced')
    })
  })

  describe('what ends an attempt', () => {
    const wrong = new PlugstreamError('ERR_OPTION_INVALID', 'command is missing')
    for (const [what, script, overrides, words] of [
      ['its exit', { events: '-k' }, {}, 'the task of alloc new was ended by SIGKILL'],
      ['a start that fails', { events: '-b' }, {}, 'the task of alloc new could not begin: no such program'],
      ['a stop by somebody else', { events: '-t' }, {}, 'the task of alloc new was stopped'],
      ['its health timeout', { judge: '-', restart: '-r' }, {}, 'not healthy after 100 ms'],
      ['its net', { judge: '-' }, { timeoutMs: 20 }, 'it does not serve after 20 ms'],
      ['a refusal of the runner', { judge: '-', refusal: wrong }, {}, 'command is missing'],
      ['its caller', { judge: '-' }, { aborted$: timer(1) }, 'aborted'],
    ] as const satisfies [string, Script, Partial<ReplacementRequest>, string][])
      it(`is ${what}, and the new one is stopped`, () => {
        const log = logOf(script, overrides)
        expect(log.at(-1)).to.contain(words)
        expect(log.filter((line) => line.includes(' stop ')).join()).to.match(/^\d+ stop new$/)
      })

    it('is nothing that happens to the old task', () => {
      expect(logOf({ events: '-o' }).at(-1)).to.equal('18 replaced')
    })

    it('leaves the new one alone where the old one was stopped by somebody else: it is all there is', () => {
      const log = logOf({ events: '-x------c' })
      expect(log.slice(2)).to.deep.equal(['5 baking', `8 rolling-back: ${crashed}`, `8 failed: ${crashed}`])
    })

    it('does not begin where its caller has given up before', () => {
      expect(logOf({}, { aborted$: lasting(true) })).to.deep.equal([
        '0 failed: ERR_ABORTED replacing plugin "ebs": aborted',
      ])
    })

    it('is nothing any more once the old one is given up', () => {
      expect(logOf({}, { aborted$: timer(16) }).at(-1)).to.equal('18 replaced')
    })
  })
})

const notReplaced = 'ERR_PLUGIN_NOT_READY plugin "ebs" was not replaced:'
const crashed = `${notReplaced} the task of alloc new exited with code 1`
const sick = `${notReplaced} alloc new did not stay well: it is sick`

/** A connection to a plugin that can do what is given. */
function able(overrides: Partial<PluginFacts['node']>): Connection {
  return fakeConnection({ fingerprint: () => lasting(facts(overrides)) })
}
