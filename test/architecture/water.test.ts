import { expect } from 'chai'
import { projectSources } from './sources.js'
import { muddied } from './water.js'

describe('the water in streams', () => {
  it('knows no clock, no chance and no timer but those of RxJS, and is subscribed to only where that is right', () => {
    expect(muddied(projectSources('streams'))).to.deep.equal([])
  })

  const bad: [words: string, text: string][] = [
    ['source$.subscribe', 'source$.subscribe(tell)'],
    ['….subscribe', 'source$\n  .pipe(map(x))\n  .subscribe()'],
    ['this.source$.subscribe', 'const s = this.source$.subscribe'],
    ['Date.now', 'const ports = { now: Date.now }'],
    ['Date.now', 'const at = globalThis.Date.now()'],
    ['Date.now', 'const at = new Date()'],
    ['Math.random', 'const jitter = Math.random()'],
    ['setTimeout', 'setTimeout(tell, 5)'],
    ['process.nextTick', 'process.nextTick(tell)'],
  ]
  for (const [words, text] of bad) {
    it(`would not pass with ${JSON.stringify(text)}`, () => {
      expect(muddied(new Map([['streams/stage.ts', text]]))).to.deep.equal([
        `streams/stage.ts: ${words.split('.').slice(-2).join('.')}`,
      ])
    })
  }

  it('is subscribed to in the composition root', () => {
    expect(muddied(new Map([['streams/host.ts', 'source$.subscribe(tell)']]))).to.deep.equal([])
  })

  it('may speak of all of it in comments and texts', () => {
    expect(
      muddied(new Map([['streams/stage.ts', "// Date.now()\nconst s = 'x.subscribe()'; new Date(0)"]])),
    ).to.deep.equal([])
  })
})
