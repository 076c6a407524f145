import { expect } from 'chai'
import { PlugstreamError } from '../../lib/errors.js'
import { dockerDriver, dockerTaskEvents } from '../../streams/docker.js'

describe('plugstream/docker', () => {
  const strange: [init: object, field: string][] = [
    [{ hostId: '' }, 'hostId'],
    [{ hostId: 7 }, 'hostId'],
    [{ hostId: 'a', host: 'a' }, 'host'],
  ]
  for (const [init, field] of strange)
    it(`refuses ${JSON.stringify(init)}, and names ${field}`, () => {
      expect(() => dockerTaskEvents(undefined, init)).to.throw(PlugstreamError, field)
      expect(() => dockerDriver(init as never)).to.throw(PlugstreamError, field)
    })

  it('needs no engine to be asked for a driver, or for events to which nobody listens', () => {
    dockerDriver({ hostId: 'a' })
    dockerTaskEvents()
  })
})
