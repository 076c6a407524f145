import type { Context, Suite } from 'mocha'
import { inUse, leftSince } from './in-use.js'

const patienceMs = 5_000

/** Fails each suite after which something is open that was not open before it: timers, sockets, children, watches. */
export const mochaHooks = {
  async beforeAll(this: Context): Promise<void> {
    process.stderr.write('') // made at its first use, which is no leak
    let before = await inUse()
    for (const suite of (this.test?.parent as Suite).suites) {
      suite.afterAll('leaves nothing', async function () {
        this.timeout(2 * patienceMs)
        const left = await leftSince(before, patienceMs)
        before = await inUse() // the next suite is not to blame
        if (left.length > 0) throw new Error(`left open after ${JSON.stringify(suite.title)}: ${left.join(', ')}`)
      })
    }
  },
}
