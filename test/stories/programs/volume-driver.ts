// A driver that holds calls at points, and is killed once it has reached all of them. `argv`: state directory, a JSON file of the points,
// which is gone after that: the next run goes through.
import { readFileSync, rmSync } from 'node:fs'
import { isAt, watchedDriver, type Point } from '../volumes-driver.js'

const [, , stateDir = '', file = ''] = process.argv
const reached = new Set<Point>()
let points: Point[] | undefined

function pointsNow(): Point[] {
  try {
    return (points ??= JSON.parse(readFileSync(file, 'utf8')) as Point[])
  } catch {
    return [] // not given yet
  }
}

await watchedDriver({
  socketPath: (process.env['CSI_ENDPOINT'] ?? '').replace('unix://', ''),
  stateDir,
  at: async (rpc, when, request) => {
    const point = pointsNow().find(isAt(rpc, when, request))
    if (!point) return
    reached.add(point)
    if (reached.size === pointsNow().length) {
      rmSync(file)
      process.kill(process.pid, 'SIGKILL')
    }
    await new Promise(() => undefined)
  },
})
