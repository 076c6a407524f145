import { expect } from 'chai'
import { startFailure, wordsOf } from '../../../lib/docker/failure.js'
import type { TaskSpec } from '../../../lib/task/driver.js'

const spec: TaskSpec = {
  allocId: 'a',
  taskName: 't',
  isolation: 'image',
  command: ['/driver', '--password=hunter22'],
  env: { TOKEN: 'secret-token' },
}
const refused = Object.assign(new Error('(HTTP code 500) server error - no room'), {
  statusCode: 500,
  json: { message: 'no room' },
})

describe('the failure of an engine', () => {
  it('is told in its own words', () => {
    expect(wordsOf(refused)).to.equal('no room')
    expect(wordsOf(new Error('connect ENOENT /var/run/docker.sock'))).to.equal('connect ENOENT /var/run/docker.sock')
  })

  it('names the task and the program, and none of its secrets', () => {
    const words = 'cannot exec /driver --password=hunter22 with TOKEN=secret-token'
    const failure = startFailure(
      spec,
      'start',
      Object.assign(new Error(), { statusCode: 500, json: { message: words } }),
    )
    expect(failure.message).to.include('task t of alloc a cannot run /driver: cannot exec /driver … with TOKEN=…')
    expect(failure).to.include({ code: 'ERR_TASK_SPAWN', retryable: false })
    expect(failure.cause).to.equal(undefined)
  })

  it('may pass where the engine did not answer', () => {
    const failure = startFailure(spec, 'make', new Error('connect ECONNREFUSED'))
    expect(failure).to.include({ code: 'ERR_CONTAINER', retryable: true })
  })
})
