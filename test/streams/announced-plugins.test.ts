import { expect } from 'chai'
import { throwError } from 'rxjs'
import { marbles, type MarbleHelpers } from '../testing/marbles.js'
import { announcedInfo, sights, World } from './announcements.js'
import { nobodyThere } from './support/values.js'

/** What comes out, by letter. */
const words = {
  R: '/r/a registered',
  G: '/r/a gone',
  N: '/r/a ERR_PLUGIN_NOT_READY',
  S: '/r/a ERR_SOCKET',
  O: '/r/a ERR_OPTION_INVALID',
  C: '/r/a ERR_PLUGIN_CONFLICT',
  r: '/r/b registered',
  g: '/r/b gone',
  c: '/r/b ERR_PLUGIN_CONFLICT',
  s: '/r/b ERR_SOCKET',
  n: '/r/b ERR_PLUGIN_NOT_READY',
  U: '/r ERR_SOCKET',
}
const other = { '/r/b': ['(f|)'] }
const registered = '0 register ebs.csi /r/a at /e'
const missing = 'the driver that was announced as "ebs.csi" at /e does not answer: there is no socket'
const taken = (holder: string): string => `the name "ebs.csi" is taken by the driver that was announced at ${holder}`
const gone = 'its registration socket is gone'

/** Shows a directory and expects what comes of it within five minutes; gives the log of what was done by then. */
function expectNotes(helpers: MarbleHelpers, world: World, seen: string, diagram: string): string[] {
  const { cold, expectObservable, flush } = helpers
  expectObservable(world.announced(cold(seen, sights, new Error('source'))), '^ 5m !').toBe(diagram, words)
  flush()
  return world.log
}

const inMarbles = (test: (helpers: MarbleHelpers) => void) => (): void => marbles(test)

describe('announcedPlugins', () => {
  it(
    'never: does nothing where nothing is seen, not even with what is restored',
    inMarbles((helpers) => {
      const world = new World(helpers, { restored: [announcedInfo()] })
      expect(expectNotes(helpers, world, '-', '-')).to.deep.equal([])
    }),
  )

  it(
    'empty: does not end with its source',
    inMarbles((helpers) => {
      expect(expectNotes(helpers, new World(helpers), '|', '-')).to.deep.equal([])
    }),
  )

  it(
    'one: registers what is announced, and tells the registrar when that is saved',
    inMarbles((helpers) => {
      const world = new World(helpers, { asks: { '/r/a': ['--(e|)'] }, applies: ['---(s|)'] })
      expect(expectNotes(helpers, world, '-a', '------R')).to.deep.equal([
        '3 register ebs.csi /r/a at /e',
        '6 tell /r/a yes',
      ])
    }),
  )

  it(
    'many: has a flow for each socket, so that none waits for another',
    inMarbles((helpers) => {
      const world = new World(helpers, { asks: { '/r/a': ['-'], '/r/b': ['(o|)'] } })
      expect(expectNotes(helpers, world, 'd', 'r')).to.deep.equal([
        '0 register other.csi /r/b at /o',
        '0 tell /r/b yes',
      ])
    }),
  )

  it(
    'source error: deregisters nothing, and cuts nothing short',
    inMarbles((helpers) => {
      const world = new World(helpers, { drivers: { '/e': '-----h' } })
      expect(expectNotes(helpers, world, 'a-#', '-----R')).to.deep.equal([
        '5 register ebs.csi /r/a at /e',
        '5 tell /r/a yes',
      ])
    }),
  )

  it(
    'port error: what is restored cannot be told, the watch of a driver fails, and it goes on',
    inMarbles((helpers) => {
      let watches = 0
      const world = new World(helpers, {
        ports: {
          restored: () => throwError(() => new Error('no')),
          connection: () =>
            watches++ === 0 ? throwError(() => new Error('no watch')) : helpers.cold('m', { m: nobodyThere() }),
        },
      })
      const log = expectNotes(helpers, world, 'a', 'N 999ms N')
      expect(log[0]).to.contain('does not answer: no watch')
      expect(log[1]).to.equal(`1000 tell /r/a ${missing}`)
    }),
  )

  it(
    'port error: a change is made again for as long as the store is down, and only then told',
    inMarbles((helpers) => {
      const world = new World(helpers, { applies: ['#', '(s|)'] })
      expect(expectNotes(helpers, world, 'a', '100ms R')).to.deep.equal([
        registered,
        '100 register ebs.csi /r/a at /e',
        '100 tell /r/a yes',
      ])
    }),
  )

  it(
    'early unsubscribe: leaves the source, the registrar and the driver',
    inMarbles((helpers) => {
      const { cold, expectObservable, expectSubscribed } = helpers
      const [sight, ask, driver] = [cold('a---', sights), cold('----'), cold('----')]
      const world = new World(helpers, {
        restored: [announcedInfo()],
        ports: { ask: () => ask as never, connection: () => driver as never },
      })
      expectObservable(world.announced(sight), '^--!').toBe('-')
      for (const port of [sight, ask, driver]) expectSubscribed(port, '^--!')
    }),
  )

  it(
    'a driver that is not there: its registrar hears why, and when it has come',
    inMarbles((helpers) => {
      const world = new World(helpers, { drivers: { '/e': 'm---h' } })
      expect(expectNotes(helpers, world, 'a', 'N---R')).to.deep.equal([
        `0 tell /r/a ${missing}`,
        '4 register ebs.csi /r/a at /e',
        '4 tell /r/a yes',
      ])
    }),
  )

  it(
    'a driver that is not ready yet, or whose socket was just replaced, is waited for without a word',
    inMarbles((helpers) => {
      const world = new World(helpers, { drivers: { '/e': 'n--r-h' } })
      expect(expectNotes(helpers, world, 'a', '-----R').at(0)).to.equal('5 register ebs.csi /r/a at /e')
    }),
  )

  it(
    'a driver that is registered may go and come: nobody is told again',
    inMarbles((helpers) => {
      const world = new World(helpers, { drivers: { '/e': 'h-m-h' } })
      const log = expectNotes(helpers, world, 'a', 'R')
      expect(log.filter((line) => line.includes('tell'))).to.deep.equal(['0 tell /r/a yes'])
      expect(log.filter((line) => line.includes('deregister'))).to.deep.equal([])
    }),
  )

  it(
    'a driver that calls itself by another name is not registered',
    inMarbles((helpers) => {
      const world = new World(helpers, { providers: { '/e': 'someone.csi' } })
      const error = 'the driver that was announced as "ebs.csi" at /e calls itself "someone.csi"'
      expect(expectNotes(helpers, world, 'a', 'N')).to.deep.equal([`0 tell /r/a ${error}`])
    }),
  )

  it(
    'a plugin that is no CSI driver is not registered',
    inMarbles((helpers) => {
      const world = new World(helpers, { asks: { '/r/a': ['(x|)'] } })
      const [told] = expectNotes(helpers, world, 'a', 'O')
      expect(told).to.contain('tell /r/a type is "DevicePlugin"')
    }),
  )

  it(
    'a socket that is gone is deregistered half a second later, and followed anew when it is back',
    inMarbles((helpers) => {
      const world = new World(helpers)
      expect(expectNotes(helpers, world, 'a-0 599ms a', 'R 501ms G 99ms R')).to.deep.equal([
        registered,
        '0 tell /r/a yes',
        `502 deregister ebs.csi /r/a (${gone})`,
        '602 register ebs.csi /r/a at /e',
        '602 tell /r/a yes',
      ])
    }),
  )

  it(
    'a socket in the place of another leaves no gap, also where there was none for a moment',
    inMarbles((helpers) => {
      const world = new World(helpers, { asks: { '/r/a': ['(e|)', '---(e|)'] } })
      const log = expectNotes(helpers, world, 'a-0 399ms A', 'R')
      expect(log.filter((line) => line.includes('deregister'))).to.deep.equal([])
      expect(log.at(-1)).to.equal('405 tell /r/a yes')
    }),
  )

  it(
    'what was said last holds until the next registrar has spoken',
    inMarbles((helpers) => {
      const world = new World(helpers, { asks: { '/r/a': ['(e|)', '#'] }, drivers: { '/e': 'm--h' } })
      expect(expectNotes(helpers, world, 'aA', 'N(S)R').filter((line) => !line.includes('tell'))).to.deep.equal([
        '4 register ebs.csi /r/a at /e',
      ])
    }),
  )

  it(
    'another driver announced in its place takes it off before it is registered',
    inMarbles((helpers) => {
      const world = new World(helpers, { asks: { '/r/a': ['(e|)', '(o|)'] } })
      const log = expectNotes(helpers, world, 'a-A', 'R-R').filter((line) => !line.includes('tell'))
      expect(log.slice(-2)).to.deep.equal([
        '2 deregister ebs.csi /r/a (another driver was announced in its place)',
        '2 register other.csi /r/a at /o',
      ])
    }),
  )

  it(
    'what cannot be registered in its place takes it off',
    inMarbles((helpers) => {
      const world = new World(helpers, { asks: { '/r/a': ['(e|)', '(x|)'] } })
      const log = expectNotes(helpers, world, 'a-A', 'R-O')
      expect(log.find((line) => line.includes('deregister'))).to.contain('2 deregister ebs.csi /r/a (type is')
    }),
  )

  it(
    'a socket that cannot be seen is told, and taken to be there',
    inMarbles((helpers) => {
      const world = new World(helpers)
      expect(expectNotes(helpers, world, 'a-uu 2s a', 'R-U')).to.deep.equal([registered, '0 tell /r/a yes'])
    }),
  )

  it(
    'of two with one name the first has it, and the second when the first is gone',
    inMarbles((helpers) => {
      const world = new World(helpers, { asks: other })
      expect(expectNotes(helpers, world, 'ad-b', 'Rc 501ms (Gr)')).to.deep.equal([
        registered,
        '0 tell /r/a yes',
        `1 tell /r/b ${taken('/r/a')}`,
        `503 deregister ebs.csi /r/a (${gone})`,
        '503 register ebs.csi /r/b at /f',
        '503 tell /r/b yes',
      ])
    }),
  )

  it(
    'of two with one name the second has it when the driver of the first is dead, and that one is taken off when it is saved',
    inMarbles((helpers) => {
      const world = new World(helpers, {
        asks: other,
        drivers: { '/e': 'h--m---h' },
        applies: ['(s|)', '--(s|)', '(s|)'],
      })
      expect(expectNotes(helpers, world, 'ad', 'Rc---(Cr)')).to.deep.equal([
        registered,
        '0 tell /r/a yes',
        `1 tell /r/b ${taken('/r/a')}`,
        '3 register ebs.csi /r/b at /f',
        '5 deregister ebs.csi /r/a (its name was taken by /r/b)',
        `5 tell /r/a ${taken('/r/b')}`,
        '5 tell /r/b yes',
      ])
    }),
  )

  it(
    'of two with one name the second does not take it in a moment in which both are dead',
    inMarbles((helpers) => {
      const world = new World(helpers, { asks: other, drivers: { '/e': 'h--m-h', '/f': 'hm----h' } })
      const log = expectNotes(helpers, world, 'ad', 'Rc')
      expect(log.filter((line) => line.includes('register ')).map((line) => line.slice(2))).to.deep.equal([
        'register ebs.csi /r/a at /e',
        'register ebs.csi /r/a at /e',
      ])
    }),
  )

  it(
    'one that waits for its name, and is dead when that is free, is said to be dead',
    inMarbles((helpers) => {
      const world = new World(helpers, { asks: other, drivers: { '/f': 'hm' } })
      const log = expectNotes(helpers, world, 'ad-b', 'Rc 501ms (nG)')
      expect(log.at(-1)).to.equal(`503 tell /r/b ${missing.replace('/e', '/f')}`)
    }),
  )

  it(
    'what was restored is confirmed, with its registrar or without, and has its name before any other',
    inMarbles((helpers) => {
      const world = new World(helpers, {
        restored: [announcedInfo('/r/b', { connection: { socketPath: '/f' } })],
        asks: { '/r/b': ['#'] },
        drivers: { '/f': '----h' },
      })
      expect(expectNotes(helpers, world, 'd', '(sC)r')).to.deep.equal([
        `0 tell /r/a ${taken('/r/b')}`,
        '4 register ebs.csi /r/b at /f',
      ])
    }),
  )

  it(
    'what was restored and is gone is deregistered',
    inMarbles((helpers) => {
      const world = new World(helpers, { restored: [announcedInfo()] })
      expect(expectNotes(helpers, world, '-0', '501ms G')).to.deep.equal([`501 deregister ebs.csi /r/a (${gone})`])
    }),
  )

  it(
    'a socket nobody listens on is told once, and asked less and less',
    inMarbles((helpers) => {
      const world = new World(helpers, { asks: { '/r/a': ['#'] } })
      expectNotes(helpers, world, 'a', 'S')
      expect(world.asked).to.have.length(14)
      expect(world.asked.slice(0, 4)).to.deep.equal(['0 /r/a', '100 /r/a', '300 /r/a', '700 /r/a'])
    }),
  )

  it(
    'a registrar that does not answer is asked every second',
    inMarbles((helpers) => {
      const world = new World(helpers, { asks: { '/r/a': [...Array<string>(20).fill('10s !'), '(e|)'] } })
      expectNotes(helpers, world, 'a', `10s S ${20 * 10_000 + 100 + 200 + 400 + 800 + 16 * 1_000 - 10_001}ms R`)
    }),
  )

  it(
    'a registrar that does not hear that its driver is registered is told again, and not where it is not',
    inMarbles((helpers) => {
      const world = new World(helpers, { drivers: { '/e': 'm-h' }, tells: ['!', '!', '(s|)'] })
      expect(expectNotes(helpers, world, 'a', 'N-R').filter((line) => line.includes('tell'))).to.deep.equal([
        `0 tell /r/a ${missing}`,
        '2 tell /r/a yes',
        '102 tell /r/a yes',
      ])
    }),
  )

  it(
    'a socket that comes and goes and comes within a moment ends up as it is',
    inMarbles((helpers) => {
      const world = new World(helpers)
      const log = expectNotes(helpers, world, 'a0A0a0A', 'R')
      expect(log.filter((line) => line.includes('deregister'))).to.deep.equal([])
    }),
  )
})
