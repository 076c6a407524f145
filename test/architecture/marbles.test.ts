import { expect } from 'chai'
import { missingRows, rows } from './marbles.js'
import { isStage } from './rules.js'
import { projectSources } from './sources.js'

describe('every stage has its marbles', () => {
  const sources = projectSources('streams', 'test')

  it('in a file of its own with a row for each case', () => {
    expect([...sources.keys()].filter(isStage)).to.not.be.empty
    expect(missingRows(sources)).to.deep.equal([])
  })

  it('as every operator has a test', () => {
    const operators = [...sources.keys()].filter((file) => file.startsWith('streams/operators/'))
    const untested = operators.filter((file) => !sources.has(`test/${file.replace(/\.ts$/, '.test.ts')}`))
    expect(untested).to.deep.equal([])
  })

  const stage = 'export function a(input$: Observable<A>, ports: Ports): Observable<B> {}'
  const test = 'test/streams/a.test.ts'

  it('or is told which rows are missing', () => {
    expect(missingRows(new Map([['streams/a.ts', stage]]))).to.deep.equal(rows.map((row) => `${test}: ${row}`))
    const some = `it('never: …'); it("Empty, and so on"); it(\`one\`); it('many'); it('source error'); it('early unsubscribe')`
    expect(missingRows(new Map([['streams/a.ts', stage], [test, some]]))).to.deep.equal([`${test}: port error`]) // prettier-ignore
  })

  it('where a row in a comment or under another word does not count', () => {
    const none = `// it('never')\ndescribe('empty'); it('oneness'); it('it has many')`
    expect(missingRows(new Map([['streams/a.ts', stage], [test, none]]))).to.have.length(rows.length) // prettier-ignore
  })

  it('while a stage without ports needs no row for their errors', () => {
    const portless = stage.replace(', ports: Ports', '')
    expect(missingRows(new Map([['streams/a.ts', portless]]))).to.not.include(`${test}: port error`)
  })
})
