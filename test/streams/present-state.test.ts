import { expect } from 'chai'
import { Subject, take, tap, type Observable, type Subscription } from 'rxjs'
import { presentState, type PresentState } from '../../streams/present-state.js'

interface Said {
  key: string
  word: string
}

/** `say('a', 'one')` feeds the state; the word `end` is a key's last. */
function state(): { present: PresentState<Said>; say: (key: string, word: string) => void; source$: Subject<Said> } {
  const source$ = new Subject<Said>()
  const present = presentState(
    source$,
    ({ key }) => key,
    ({ word }) => word === 'end',
  )
  return { present, say: (key, word) => source$.next({ key, word }), source$ }
}

/** What a subscriber hears, as it hears it. */
function hear(said$: Observable<Said>): { words: string[]; subscription: Subscription } {
  const words: string[] = []
  const subscription = said$.subscribe({ next: ({ word }) => words.push(word), complete: () => words.push('.') })
  return { words, subscription }
}

describe('presentState', () => {
  it('gives who comes late the present value of each key, then every new one', () => {
    const { present, say } = state()
    const early = hear(present.all$)
    say('a', 'a1')
    say('b', 'b1')
    say('a', 'a2')
    const late = hear(present.all$)
    say('b', 'b2')
    expect(early.words).to.deep.equal(['a1', 'b1', 'a2', 'b2'])
    expect(late.words).to.deep.equal(['a2', 'b1', 'b2'])
  })

  it('gives of one key its present value, then every new one, and nothing of another', () => {
    const { present, say } = state()
    const early = hear(present.of('a'))
    say('b', 'b1')
    say('a', 'a1')
    const late = hear(present.of('a'))
    say('b', 'b2')
    say('a', 'a2')
    expect(early.words).to.deep.equal(['a1', 'a2'])
    expect(late.words).to.deep.equal(['a1', 'a2'])
  })

  it('tells what is so now', () => {
    const { present, say } = state()
    expect(present.get('a')).to.equal(undefined)
    say('a', 'a1')
    expect(present.get('a')).to.deep.equal({ key: 'a', word: 'a1' })
  })

  it('forgets a key with its last value, which is told; one that comes again is followed again', () => {
    const { present, say } = state()
    const one = hear(present.of('a'))
    say('a', 'a1')
    say('a', 'end')
    expect(present.get('a')).to.equal(undefined)
    expect(hear(present.all$).words).to.deep.equal([])
    expect(hear(present.of('a')).words).to.deep.equal([])
    say('a', 'a2')
    expect(one.words).to.deep.equal(['a1', 'end', 'a2'])
  })

  describe('one order for everybody', () => {
    it('holds for a value that a subscriber causes while another is told', () => {
      const { present, say } = state()
      const before = hear(present.all$)
      const causing = hear(present.all$.pipe(tap(({ word }) => word === 'one' && say('a', 'two'))))
      const after = hear(present.all$)
      const ofKey = hear(present.of('a'))
      say('a', 'one')
      for (const { words } of [before, causing, after, ofKey]) expect(words).to.deep.equal(['one', 'two'])
    })

    it('holds for a chain of them, and for several at once', () => {
      const { present, say } = state()
      const chain: Record<string, string[]> = { '1': ['2', '3'], '2': ['4'], '3': ['5'] }
      const causing = hear(
        present.all$.pipe(
          tap(({ word }) => {
            for (const next of chain[word] ?? []) say(next, next)
          }),
        ),
      )
      const after = hear(present.all$)
      say('1', '1')
      expect(causing.words).to.deep.equal(['1', '2', '3', '4', '5'])
      expect(after.words).to.deep.equal(causing.words)
    })

    it('holds for a value that a replay causes: after the replay, for the newcomer as for the others', () => {
      const { present, say } = state()
      const before = hear(present.all$)
      say('a', 'a1')
      say('b', 'b1')
      const causing = hear(present.all$.pipe(tap(({ word }) => word === 'a1' && say('a', 'a2'))))
      expect(before.words).to.deep.equal(['a1', 'b1', 'a2'])
      expect(causing.words).to.deep.equal(['a1', 'b1', 'a2'])
    })

    const views = ['all$', 'of'] as const
    for (const outer of views) {
      for (const inner of views) {
        it(`holds for who subscribes to ${inner} while ${outer} is told: the value is in its replay, and not told twice`, () => {
          const { present, say } = state()
          const view = (name: 'all$' | 'of'): Observable<Said> => (name === 'of' ? present.of('a') : present.all$)
          const late: string[][] = []
          hear(
            view(outer).pipe(
              tap(({ word }) => {
                if (word === 'one') late.push(hear(view(inner)).words)
              }),
            ),
          )
          say('a', 'one')
          say('a', 'two')
          expect(late).to.deep.equal([['one', 'two']])
        })
      }
    }

    it('holds for who subscribes during a replay', () => {
      const { present, say } = state()
      say('a', 'a1')
      const late: string[][] = []
      hear(present.all$.pipe(tap(({ word }) => word === 'a1' && late.push(hear(present.of('a')).words))))
      say('a', 'a2')
      expect(late).to.deep.equal([['a1', 'a2']])
    })
  })

  it('leaves the others be when one leaves, also with the value that is told', () => {
    const { present, say } = state()
    const leaving = hear(present.all$.pipe(take(1)))
    const staying = hear(present.all$)
    say('a', 'a1')
    say('a', 'a2')
    expect(leaving.words).to.deep.equal(['a1', '.'])
    expect(staying.words).to.deep.equal(['a1', 'a2'])
  })

  describe('its end', () => {
    it('is the end of its source: for who is there, and for who comes after the present state', () => {
      const { present, say, source$ } = state()
      const [all, one] = [hear(present.all$), hear(present.of('a'))]
      say('a', 'a1')
      source$.complete()
      expect(present.feed.closed).to.equal(true)
      for (const { words } of [all, one, hear(present.all$), hear(present.of('a'))])
        expect(words).to.deep.equal(['a1', '.'])
      expect(hear(present.of('b')).words).to.deep.equal(['.'])
    })

    it('is that of its feed, after which nothing is told any more', () => {
      const { present, say, source$ } = state()
      const [all, one] = [hear(present.all$), hear(present.of('a'))]
      present.feed.unsubscribe()
      expect(source$.observed).to.equal(false)
      say('a', 'a1')
      for (const { words } of [all, one]) expect(words).to.deep.equal(['.'])
    })

    it('leaves nothing known, where the feed was ended', () => {
      const { present, say } = state()
      say('a', 'a1')
      present.feed.unsubscribe()
      expect(present.get('a')).to.equal(undefined)
      for (const { words } of [hear(present.all$), hear(present.of('a'))]) expect(words).to.deep.equal(['.'])
    })

    it('may be brought about by what it tells', () => {
      const { present, say } = state()
      const first = hear(present.all$.pipe(tap(() => present.feed.unsubscribe())))
      const second = hear(present.all$)
      say('a', 'a1')
      expect([first.words, second.words]).to.deep.equal([['.'], ['.']])
    })
  })
})
