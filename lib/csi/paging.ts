import { csiEmptyPages } from '../defaults.js'
import { PlugstreamError } from '../errors.js'
import type { Page, PageRequest } from './messages/shared.js'

/**
 * The entries of all pages, one page at a time as they are asked for.
 *
 * @throws what `read` throws, and ERR_CSI_PROTOCOL where the plugin would go on for ever: a token that comes a second time, or page upon
 * page with nothing in it.
 */
export async function* entriesOf<Request extends PageRequest, Entry>(
  rpc: string,
  request: Request,
  read: (request: Request) => Promise<Page<Entry>>,
): AsyncGenerator<Entry, void, undefined> {
  const seen = new Set<string>()
  let page = request
  let emptyPages = 0
  for (;;) {
    const { entries, nextToken } = await read(page)
    yield* entries
    if (nextToken === undefined) return
    emptyPages = entries.length === 0 ? emptyPages + 1 : 0
    const endless = seen.has(nextToken)
      ? 'a token came a second time'
      : emptyPages > csiEmptyPages
        ? `${emptyPages} pages were empty`
        : undefined
    if (endless)
      throw new PlugstreamError('ERR_CSI_PROTOCOL', `${rpc}: the pages never end: ${endless}`, { details: { rpc } })
    seen.add(nextToken)
    page = { ...page, startingToken: nextToken }
  }
}
