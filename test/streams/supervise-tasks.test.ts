import { expect } from 'chai'
import { throwError } from 'rxjs'
import { PlugstreamError } from '../../lib/errors.js'
import type { PluginIdentity } from '../../lib/plugin/kind.js'
import type { PluginRef } from '../../lib/plugin/plugin.js'
import type { PluginTask, TaskEvent } from '../../lib/task/task.js'
import type { SupervisedPlugin } from '../../streams/supervise-tasks.js'
import { marbles, type MarbleHelpers } from '../testing/marbles.js'
import { eventsOf, identity, stateOf, task, World } from './supervision.js'

const node: PluginRef = { type: 'csi-node', name: 'ebs', allocId: 'a' }
const controller: PluginRef = { ...node, type: 'csi-controller' }
const monolith = { types: ['csi-controller', 'csi-node'] }

/** What supervision says, by letter. */
const words = {
  H: 'plugin-healthy ready',
  E: 'plugin-unhealthy task-exited',
  T: 'plugin-unhealthy stopping',
  X: 'plugin-unhealthy stopped',
  B: 'plugin-unhealthy unknown',
  M: 'plugin-unhealthy socket-missing',
  r: 'restarting socket-missing',
  R: 'RESTART socket-missing',
}

/** Feeds the events of one task to supervision and expects what it says within two minutes; gives the log of what it did by the end. */
function expectSaid(world: World, events: string, diagram: string, values: Record<string, string> = words): string[] {
  const { hot, expectObservable, flush } = world.helpers
  const event$ = hot(events, eventsOf(task), new Error('source'))
  // Tries that go on for ever have to end some time.
  expectObservable(world.supervise(event$), '^ 2m !').toBe(diagram, values)
  flush()
  return world.log
}

/** What a restart for a reason looks like: its first note, the note of the restart, the request. */
const restartFor = (reason: string): Record<string, string> => ({
  ...words,
  U: `plugin-unhealthy ${reason}`,
  r: `restarting ${reason}`,
  R: `RESTART ${reason}`,
})

const inMarbles = (test: (helpers: MarbleHelpers) => void) => (): void => marbles(test)

describe('superviseTasks', () => {
  it(
    'never: says nothing where nothing happens',
    inMarbles((helpers) => {
      expect(expectSaid(new World(helpers), '-', '-')).to.eql([])
    }),
  )

  it(
    'empty: does not end with its source',
    inMarbles((helpers) => {
      expect(expectSaid(new World(helpers), '|', '-')).to.eql([])
    }),
  )

  it(
    'one: registers a plugin when it is ready and has said who it is, then tells its health',
    inMarbles((helpers) => {
      const world = new World(helpers, { connections: ['m---h'], identifies: ['--(i|)'], applies: ['-(s|)'] })
      expect(expectSaid(world, '-s', '--------H')).to.eql(['7 register csi-node 1'])
      expect(world.targets).to.eql(['csi-node /run/ebs/csi.sock 1'])
    }),
  )

  it(
    'many: has a flow for each task',
    inMarbles((helpers) => {
      const events = { s: started(task), o: started({ ...task, taskName: 'other' }) }
      const world = new World(helpers, { connections: ['-----h', 'h'] })
      helpers.expectObservable(world.supervise(helpers.hot('so', events))).toBe('-H---H', words)
    }),
  )

  it(
    'source error: deregisters nothing, and what was begun goes on',
    inMarbles((helpers) => {
      const world = new World(helpers, { connections: ['m----h'] })
      expect(expectSaid(world, 's-#', '-----H')).to.eql(['5 register csi-node 1'])
      expect(world.present).to.eql([node])
    }),
  )

  it(
    'source end: deregisters nothing, and what was begun goes on',
    inMarbles((helpers) => {
      const world = new World(helpers, { connections: ['m----h'] })
      expect(expectSaid(world, 's-|', '-----H')).to.eql(['5 register csi-node 1'])
      expect(world.present).to.eql([node])
    }),
  )

  it(
    'port error of configure: one note with the words of the error, nothing registered, nobody else disturbed',
    inMarbles((helpers) => {
      const bad = { ...task, taskName: 'bad' }
      const events = { p: { ...started(bad), kind: 'prestart' as const }, b: started(bad), s: started(task) }
      const world: World = new World(helpers, {
        ports: {
          configure: (one): SupervisedPlugin => {
            if (one.taskName === 'bad') throw new Error('csiPlugin.id is ""')
            return world.plugin
          },
          now: () => 7,
        },
      })
      const note = { task: bad, kind: 'plugin-unhealthy', reason: 'unknown', message: 'csiPlugin.id is ""', at: 7 }
      const well = { task, kind: 'plugin-healthy', reason: 'ready', message: 'the plugin is ready', at: 7 }
      helpers.expectObservable(world.said(helpers.hot('p-b-s', events))).toBe('B---H', { B: note, H: well })
      helpers.flush()
      expect(world.log).to.eql(['4 register csi-node 1'])
    }),
  )

  it(
    'port error of connection: counts against the time',
    inMarbles((helpers) => {
      expectSaid(new World(helpers, { connections: ['#'] }), 's', '100ms (UrR)', restartFor('disconnected'))
    }),
  )

  it(
    'port error of connection: is asked again after unhealthyBeatMs',
    inMarbles((helpers) => {
      const world = new World(helpers, { connections: ['#', '--#', 'h'], healthTimeoutMs: 200 })
      expect(expectSaid(world, 's', '102ms H')).to.eql(['102 register csi-node 1'])
    }),
  )

  it(
    'asks whether a plugin that is ready may be registered, and keeps its connection open meanwhile',
    inMarbles((helpers) => {
      const asked: string[] = []
      const admit = (one: PluginTask) => (asked.push(one.allocId), helpers.cold('---a'))
      const world = new World(helpers, { connections: ['-h'], ports: { admit } })
      expect(expectSaid(world, 's', '----H')).to.eql(['4 register csi-node 1'])
      expect(asked).to.eql(['a'])
      expect(world.listened).to.eql(['0-4'])
    }),
  )

  it(
    'never registers what may not be, also where that is all there will be to hear of it',
    inMarbles((helpers) => {
      const world = new World(helpers, { ports: { admit: () => helpers.cold('-|') } })
      expect(expectSaid(world, 's---x', '-')).to.eql(['4 release'])
    }),
  )

  it(
    'port error of admit: one note with the words of the error, and nothing registered',
    inMarbles((helpers) => {
      const admit = () => helpers.cold('-#', {}, new Error('it may not be'))
      expect(expectSaid(new World(helpers, { ports: { admit } }), 's', '-B')).to.eql([])
    }),
  )

  it(
    'port error of healthOf: says nothing of health, and the rest goes on',
    inMarbles((helpers) => {
      const world = new World(helpers, { ports: { healthOf: () => throwError(() => new Error('health')) } })
      expect(expectSaid(world, 's--x', '-')).to.eql([
        '0 register csi-node 1',
        '3 deregister csi-node (stopped)',
        '3 release',
      ])
    }),
  )

  it(
    'port error of release: the flow ends all the same, and a new one may begin',
    inMarbles((helpers) => {
      const world = new World(helpers, { ports: { release: () => throwError(() => new Error('busy')) } })
      expect(expectSaid(world, 's--x--s', 'H--X--H')).to.eql([
        '0 register csi-node 1',
        '3 deregister csi-node (stopped)',
        '6 register csi-node 1',
      ])
    }),
  )

  it(
    'early unsubscribe: leaves the source, the connection and the call in flight',
    inMarbles((helpers) => {
      const { cold, hot, expectObservable, expectSubscribed } = helpers
      const identity$ = cold<PluginIdentity>('-')
      const state$ = cold('-h', { h: stateOf('h', { identify: () => identity$ }) })
      const world = new World(helpers, { ports: { connection: () => state$ } })
      const event$ = hot('s', eventsOf(task))
      expectObservable(world.supervise(event$), '^--!').toBe('-')
      expectSubscribed(event$, '^--!')
      expectSubscribed(state$, '^--!')
      expectSubscribed(identity$, '-^-!')
    }),
  )

  describe('while it waits for a plugin', () => {
    const sights = {
      m: 'socket-missing',
      r: 'socket-refused',
      f: 'not-a-socket',
      d: 'access-denied',
      t: 'probe-timeout',
      g: 'not-csi',
      b: 'probe-failed',
    }
    for (const [letter, reason] of Object.entries(sights)) {
      it(
        `asks for a restart with the reason ${reason} after healthTimeoutMs`,
        inMarbles((helpers) => {
          expectSaid(new World(helpers, { connections: [letter] }), 's', '100ms (UrR)', restartFor(reason))
        }),
      )
    }

    it(
      'names the last reason and the expected path',
      inMarbles((helpers) => {
        const world = new World(helpers, { connections: ['m-r'], ports: { now: () => 7 } })
        const reason = 'socket-refused'
        const message =
          'not ready after 100 ms: socket-refused, nobody listens; its socket is expected at /run/ebs/csi.sock'
        helpers.expectObservable(world.said(helpers.hot('s', eventsOf(task)))).toBe('100ms (UrR)', {
          U: { task, kind: 'plugin-unhealthy', reason, message, at: 7 },
          r: { task, kind: 'restarting', reason, message, at: 7 },
          R: { task, reason, message },
        })
      }),
    )

    it(
      'asks for a restart also where nothing at all is seen of the socket',
      inMarbles((helpers) => {
        expectSaid(new World(helpers, { connections: ['-'] }), 's', '100ms (UrR)', restartFor('unknown'))
      }),
    )

    it(
      'takes a socket that comes after a minute where two are allowed',
      inMarbles((helpers) => {
        const world = new World(helpers, { connections: ['m 59999ms h'], healthTimeoutMs: 120_000 })
        expect(expectSaid(world, 's', '60s H')).to.eql(['60000 register csi-node 1'])
      }),
    )

    it(
      'gives a plugin that answers "not yet" until initTimeoutMs',
      inMarbles((helpers) => {
        expectSaid(new World(helpers, { connections: ['-n'] }), 's', '300ms (UrR)', restartFor('not-ready'))
      }),
    )

    it(
      'counts healthTimeoutMs anew from when it does not answer that any more',
      inMarbles((helpers) => {
        const world = new World(helpers, { connections: ['n 149ms m'] })
        expectSaid(world, 's', '250ms (MrR)')
      }),
    )

    it(
      'has no patience left for "not yet" after initTimeoutMs',
      inMarbles((helpers) => {
        const world = new World(helpers, { connections: ['m 399ms n'], healthTimeoutMs: 1_000 })
        expectSaid(world, 's', '400ms (UrR)', restartFor('not-ready'))
      }),
    )

    it(
      'asks once a start, and registers a plugin that is ready after that',
      inMarbles((helpers) => {
        const world = new World(helpers, { connections: ['m 399ms h'] })
        expect(expectSaid(world, 's', '100ms (MrR) 295ms H')).to.eql(['400 register csi-node 1'])
      }),
    )

    it(
      'asks again in the next run, where the note of the first still holds',
      inMarbles((helpers) => {
        const world = new World(helpers, { connections: ['m'] })
        expectSaid(world, 's 149ms s', '100ms (MrR) 145ms (rR)')
      }),
    )

    it(
      'drops the wait at a new start, exited or not',
      inMarbles((helpers) => {
        const world = new World(helpers, { connections: ['m'] })
        expectSaid(world, 's 49ms s', '150ms (MrR)')
        expect(world.targets).to.eql(['csi-node /run/ebs/csi.sock 1', 'csi-node /run/ebs/csi.sock 2'])
        expect(world.listened).to.eql(['0-50', '50-120001'])
      }),
    )

    for (const [event, what] of Object.entries({ c: 'exit', e: 'last exit', t: 'stop', p: 'next prestart' })) {
      it(
        `drops the wait at the ${what} of the task`,
        inMarbles((helpers) => {
          const world = new World(helpers, { connections: ['m'] })
          expect(expectSaid(world, `s--${event}`, '-')).to.eql([])
          expect(world.listened).to.eql(['0-3'])
        }),
      )
    }

    it(
      'asks a plugin that fails to say who it is again, after a growing pause',
      inMarbles((helpers) => {
        const world = new World(helpers, { identifies: ['#', '#', '(i|)'] })
        expect(expectSaid(world, 's', '52ms H')).to.eql(['52 register csi-node 1'])
      }),
    )

    it(
      'takes a plugin that fails to say who it is for one that is not ready',
      inMarbles((helpers) => {
        const world = new World(helpers, { identifies: ['#'], unwilling: new Error('the name is empty') })
        expectSaid(world, 's', '100ms (UrR)', restartFor('probe-failed'))
      }),
    )

    it(
      'takes a plugin that never says who it is for one that does not answer',
      inMarbles((helpers) => {
        expectSaid(new World(helpers, { identifies: ['-'] }), 's', '100ms (UrR)', restartFor('probe-timeout'))
      }),
    )

    it(
      'takes a plugin that cannot say who it is for none of its kind',
      inMarbles((helpers) => {
        const unwilling = new PlugstreamError('ERR_CSI_UNSUPPORTED', '')
        expectSaid(new World(helpers, { identifies: ['#'], unwilling }), 's', '100ms (UrR)', restartFor('not-csi'))
      }),
    )

    it(
      'race: asks again who it is where the connection was lost during the answer',
      inMarbles((helpers) => {
        const world = new World(helpers, { connections: ['h-m--h'], identifies: ['---(i|)', '(i|)'] })
        expect(expectSaid(world, 's', '-----H')).to.eql(['5 register csi-node 1'])
      }),
    )
  })

  describe('while it registers', () => {
    it(
      'registers both halves of a monolith, the controller first, and is healthy when both are',
      inMarbles((helpers) => {
        const health = { 'csi-controller': '-h', 'csi-node': '---h' }
        const world = new World(helpers, { ...monolith, applies: ['--(s|)'], health })
        expect(expectSaid(world, 's', '-------H')).to.eql(['0 register csi-controller 1', '2 register csi-node 1'])
      }),
    )

    it(
      'takes the first back where the second is refused, and asks for no restart',
      inMarbles((helpers) => {
        const world = new World(helpers, { ...monolith, applies: ['(s|)', '-!', '(s|)'] })
        expect(expectSaid(world, 's', '-B')).to.eql([
          '0 register csi-controller 1',
          '0 register csi-node 1',
          '1 deregister csi-controller (not all of it could be registered)',
        ])
      }),
    )

    it(
      'leaves the first where it was registered before this start',
      inMarbles((helpers) => {
        const world = new World(helpers, { ...monolith, registered: [controller], applies: ['(s|)', '!', '(s|)'] })
        expect(expectSaid(world, 's', 'B')).to.eql(['0 register csi-controller 1', '0 register csi-node 1'])
      }),
    )

    it(
      'goes no further where the first is refused',
      inMarbles((helpers) => {
        const world = new World(helpers, { ...monolith, applies: ['!'] })
        expect(expectSaid(world, 's', 'B')).to.eql(['0 register csi-controller 1'])
      }),
    )

    it(
      'tries again for as long as the store is down: nothing is taken back, no restart asked for',
      inMarbles((helpers) => {
        const world = new World(helpers, { ...monolith, applies: ['(s|)', '#', '#', '(s|)'] })
        expect(expectSaid(world, 's', '300ms H')).to.eql([
          '0 register csi-controller 1',
          '0 register csi-node 1',
          '100 register csi-node 1',
          '300 register csi-node 1',
        ])
      }),
    )

    it(
      'listens to the connection until the registration is saved, and no longer',
      inMarbles((helpers) => {
        const { cold, hot, expectObservable, expectSubscribed } = helpers
        const state$ = cold('h', { h: stateOf('h', { identify: () => cold('(i|)', { i: identity }) }) })
        const world = new World(helpers, { applies: ['---(s|)'], ports: { connection: () => state$ } })
        expectObservable(world.supervise(hot('s', eventsOf(task)))).toBe('---H', words)
        expectSubscribed(state$, '^--!')
      }),
    )

    it(
      'registers nothing of a task that is no plugin',
      inMarbles((helpers) => {
        const world = new World(helpers, { ports: { configure: () => undefined } })
        expect(expectSaid(world, 'pstex', '-')).to.eql(['4 release'])
      }),
    )
  })

  describe('while the task lives', () => {
    it(
      'tells an edge once, with the reason of the edge',
      inMarbles((helpers) => {
        const world = new World(helpers, { health: { 'csi-node': 'h-t-m-h-h' } })
        expectSaid(world, 's', 'H-U---H', { ...words, U: 'plugin-unhealthy probe-timeout' })
      }),
    )

    it(
      'tells nothing of a plugin that was never healthy before its time is over',
      inMarbles((helpers) => {
        expectSaid(new World(helpers, { health: { 'csi-node': 't-m' } }), 's', '-')
      }),
    )

    it(
      'takes a monolith for unhealthy where one half is, and names it',
      inMarbles((helpers) => {
        const health = { 'csi-controller': 'h', 'csi-node': 'h-m' }
        const world = new World(helpers, { ...monolith, health, ports: { now: () => 7 } })
        const well = { task, kind: 'plugin-healthy', reason: 'ready', message: 'the plugin is ready', at: 7 }
        const message = 'csi-node ebs: there is no socket'
        helpers.expectObservable(world.said(helpers.hot('s', eventsOf(task)))).toBe('H-M', {
          H: well,
          M: { task, kind: 'plugin-unhealthy', reason: 'socket-missing', message, at: 7 },
        })
      }),
    )

    it(
      'stays registered over three crashes: one wait, one note an edge, no duplicate',
      inMarbles((helpers) => {
        const world = new World(helpers, { connections: ['-h'] })
        expect(expectSaid(world, 's--c--ps--c--ps--c--ps', '-H-E----H-E----H-E----H')).to.eql([
          '1 register csi-node 1',
          '8 register csi-node 1',
          '15 register csi-node 1',
          '22 register csi-node 1',
        ])
        expect(world.present).to.eql([node])
        expect(world.targets.map((target) => target.at(-1))).to.eql(['1', '2', '3', '4'])
        expect(world.listened).to.eql(['0-1', '7-8', '14-15', '21-22'])
      }),
    )

    it(
      'does not take what is said of the old run for the new one',
      inMarbles((helpers) => {
        const world = new World(helpers, { connections: ['h', 'm'], health: { 'csi-node': 'h' } })
        expectSaid(world, 's--c--s', 'H--E 102ms (rR)')
      }),
    )

    it(
      'deregisters at prestart what another configuration had registered',
      inMarbles((helpers) => {
        const world = reconfigured(helpers, [{ id: 'ebs' }, { id: 'ebs2' }])
        expect(expectSaid(world, 's--c--p-s', 'H--E----H')).to.eql([
          '0 register csi-node 1',
          '6 deregister csi-node (configuration changed)',
          '8 register csi-node 1',
        ])
        expect(world.present.map((ref) => ref.name)).to.eql(['ebs2'])
      }),
    )

    it(
      'deregisters only the half that another configuration does not have',
      inMarbles((helpers) => {
        const world = reconfigured(helpers, [monolith, { types: ['csi-node'] }])
        expect(expectSaid(world, 's--c--p-s', 'H--E----H').slice(2)).to.eql([
          '6 deregister csi-controller (configuration changed)',
          '8 register csi-node 1',
        ])
      }),
    )

    it(
      'deregisters everything of a task that is no plugin any more',
      inMarbles((helpers) => {
        const world = reconfigured(helpers, [{}, undefined])
        expect(expectSaid(world, 's--c--p', 'H--E').slice(1)).to.eql(['6 deregister csi-node (configuration changed)'])
      }),
    )

    it(
      'deregisters everything of a task whose configuration cannot be read any more, and says why',
      inMarbles((helpers) => {
        const world = reconfigured(helpers, [{}, new Error('csiPlugin.id is ""')])
        expect(expectSaid(world, 's--c--p', 'H--E--B').slice(1)).to.eql([
          '6 deregister csi-node (configuration changed)',
        ])
      }),
    )
  })

  describe('when the task ends', () => {
    it(
      'deregisters at once when it is told to stop, and once only',
      inMarbles((helpers) => {
        expect(expectSaid(new World(helpers), 's--t-e-x', 'H--T')).to.eql([
          '0 register csi-node 1',
          '3 deregister csi-node (stopping)',
          '7 release',
        ])
      }),
    )

    it(
      'deregisters at an exit that is the last, and once only',
      inMarbles((helpers) => {
        expect(expectSaid(new World(helpers), 's--e-e-x', 'H--E')).to.eql([
          '0 register csi-node 1',
          '3 deregister csi-node (task-exited)',
          '7 release',
        ])
      }),
    )

    it(
      'stays registered at an exit that is not the last',
      inMarbles((helpers) => {
        const world = new World(helpers)
        expect(expectSaid(world, 's--c', 'H--E')).to.eql(['0 register csi-node 1'])
        expect(world.present).to.eql([node])
      }),
    )

    it(
      'registers anew after stopping, exited, started',
      inMarbles((helpers) => {
        expect(expectSaid(new World(helpers), 's--t--e--ps', 'H--T------H')).to.eql([
          '0 register csi-node 1',
          '3 deregister csi-node (stopping)',
          '10 register csi-node 1',
        ])
      }),
    )

    it(
      'deregisters both halves of a monolith in one turn',
      inMarbles((helpers) => {
        const world = new World(helpers, { ...monolith, applies: ['(s|)', '(s|)', '---(s|)'] })
        expect(expectSaid(world, 's--t', 'H--T').slice(2)).to.eql([
          '3 deregister csi-controller (stopping)',
          '3 deregister csi-node (stopping)',
        ])
        expect(world.present).to.eql([])
      }),
    )

    it(
      'deregisters what was restored where stopped comes alone',
      inMarbles((helpers) => {
        const world = new World(helpers, { registered: [controller, node] })
        expect(expectSaid(world, '-x', '-')).to.eql([
          '1 deregister csi-controller (stopped)',
          '1 deregister csi-node (stopped)',
          '1 release',
        ])
      }),
    )

    it(
      'asks for the release in the turn of stopped, before anything that comes after it',
      inMarbles((helpers) => {
        const world = new World(helpers, { applies: ['(s|)', '---(s|)', '(s|)'] })
        expect(expectSaid(world, 's--(xp)', 'H--X')).to.eql([
          '0 register csi-node 1',
          '3 deregister csi-node (stopped)',
          '3 release',
          // asked for again, since the first was not answered when the task came back
          '3 deregister csi-node (stopped)',
        ])
      }),
    )

    it(
      'tries to deregister for as long as the store is down',
      inMarbles((helpers) => {
        const world = new World(helpers, { applies: ['(s|)', '#', '#', '(s|)'] })
        expect(expectSaid(world, 's-x', 'H-X')).to.eql([
          '0 register csi-node 1',
          '2 deregister csi-node (stopped)',
          '2 release',
          '102 deregister csi-node (stopped)',
          '302 deregister csi-node (stopped)',
        ])
        expect(world.present).to.eql([])
      }),
    )

    it(
      'gives up where the registry refuses for good',
      inMarbles((helpers) => {
        const world = new World(helpers, { applies: ['(s|)', '!'] })
        expect(expectSaid(world, 's-x', 'H-X')).to.have.length(3)
      }),
    )

    it(
      'race: an exit does not cut short the deregistration that stopping asked for',
      inMarbles((helpers) => {
        const world = new World(helpers, { applies: ['(s|)', '#', '(s|)'] })
        expect(expectSaid(world, 's-t-c', 'H-T')).to.eql([
          '0 register csi-node 1',
          '2 deregister csi-node (stopping)',
          '4 deregister csi-node (stopping)',
        ])
        expect(world.present).to.eql([])
      }),
    )

    it(
      'race: a start before the deregistration is saved comes after it, and no later try removes the new one',
      inMarbles((helpers) => {
        const world = new World(helpers, { applies: ['(s|)', '#', '--(s|)', '(s|)'] })
        expect(expectSaid(world, 's-t-s', 'H-T---H')).to.eql([
          '0 register csi-node 1',
          '2 deregister csi-node (stopping)',
          '4 deregister csi-node (stopping)',
          '6 register csi-node 1',
        ])
        expect(world.present).to.eql([node])
      }),
    )

    it(
      'race: a registration in flight is deregistered as well',
      inMarbles((helpers) => {
        const world = new World(helpers, { applies: ['----(s|)', '(s|)'] })
        expect(expectSaid(world, 's-t', '-')).to.eql(['0 register csi-node 1', '2 deregister csi-node (stopping)'])
      }),
    )

    it(
      'race: a task that comes back before stopped is done with goes on in the same flow',
      inMarbles((helpers) => {
        const world = new World(helpers, { applies: ['(s|)', '#', '(s|)'] })
        expect(expectSaid(world, 's-x-s', 'H-X-H')).to.eql([
          '0 register csi-node 1',
          '2 deregister csi-node (stopped)',
          '2 release',
          '4 deregister csi-node (stopped)',
          '4 register csi-node 1',
        ])
        expect(world.present).to.eql([node])
      }),
    )
  })
})

function started(of: PluginTask): TaskEvent {
  return { kind: 'started', task: of, at: 0 }
}

/** A task that comes back with another configuration after its first run: other types, another id, none, or one that fails. */
function reconfigured(
  helpers: MarbleHelpers,
  configurations: readonly ({ id?: string; types?: readonly string[] } | Error | undefined)[],
): World {
  let reads = 0
  const configure = (): SupervisedPlugin | undefined => {
    const read = configurations[Math.min(reads++, configurations.length - 1)]
    if (read instanceof Error) throw read
    const { id: name = 'ebs', types = ['csi-node'] } = read ?? {}
    return read && { ...world.plugin, refs: types.map((type) => ({ type, name, allocId: 'a' })) }
  }
  const world: World = new World(helpers, { ports: { configure } })
  return world
}
