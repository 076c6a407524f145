import { expect } from 'chai'
import { SqliteBatch } from '../../../lib/store/sqlite-batch.js'

/** A connection that notes what it was asked, and fails what it is told to. */
function scripted(failing: Record<string, string>): { asked: string[]; batches: SqliteBatch } {
  const asked: string[] = []
  const query = async (sql: string): Promise<unknown> => {
    const word = sql.split(' ')[0] ?? ''
    asked.push(word)
    if (word in failing) throw new Error(failing[word])
    return []
  }
  return { asked, batches: new SqliteBatch({ query, opts: { table: 'keyv' } }) }
}

const both = [
  ['a', 'text'],
  ['b', undefined],
] as const

async function messageOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'nothing thrown',
    (failure: unknown) => (failure as Error).message,
  )
}

describe('a batch for SQLite', () => {
  it('asks nothing for an empty batch', async () => {
    const { asked, batches } = scripted({})
    await batches.save([])
    expect(asked).to.deep.equal([])
  })

  it('is one statement where that is enough, and one transaction otherwise', async () => {
    const { asked, batches } = scripted({})
    await batches.save([both[0]])
    await batches.save([both[1]])
    await batches.save(both)
    expect(asked).to.deep.equal(['INSERT', 'DELETE', 'BEGIN', 'INSERT', 'DELETE', 'COMMIT'])
  })

  it('is rolled back when a statement or the commit fails', async () => {
    for (const word of ['INSERT', 'DELETE', 'COMMIT']) {
      const { asked, batches } = scripted({ [word]: 'disk full' })
      expect(await messageOf(batches.save(both))).to.equal('disk full')
      expect(asked.at(-1)).to.equal('ROLLBACK')
    }
  })

  it('takes a transaction that SQLite has ended itself for ended', async () => {
    const failing: Record<string, string> = {
      COMMIT: 'disk full',
      ROLLBACK: 'cannot rollback - no transaction is active',
    }
    const { asked, batches } = scripted(failing)
    await messageOf(batches.save(both))
    delete failing.COMMIT
    asked.length = 0
    await batches.save([both[0]])
    expect(asked).to.deep.equal(['INSERT'])
  })

  it('writes nothing into a transaction that could not be ended, until it can be', async () => {
    const failing: Record<string, string> = { COMMIT: 'disk full', ROLLBACK: 'disk I/O error' }
    const { asked, batches } = scripted(failing)
    await messageOf(batches.save(both))
    asked.length = 0
    expect(await messageOf(batches.save([both[0]]))).to.contain('could not be ended')
    expect(asked).to.deep.equal(['ROLLBACK'])
    delete failing.ROLLBACK
    asked.length = 0
    await batches.save([both[0]])
    expect(asked).to.deep.equal(['ROLLBACK', 'INSERT'])
  })
})
