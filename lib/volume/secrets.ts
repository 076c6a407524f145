import type { Secrets } from '../csi/messages/shared.js'
import { invalidOption, PlugstreamError } from '../errors.js'
import type { Limits } from './limits.js'
import type { VolumePorts } from './ports.js'
import type { SecretsRequest } from './volume.js'

/**
 * Gives the secrets of a call by their name, or nothing where it knows none of that name: the call is then not made
 * (ERR_OPTION_INVALID). Asked at each call; what it gives is not stored. It is waited for as long as there is time for what the call is
 * part of: its signal is aborted when nobody waits any more. What it throws comes out as ERR_USAGE without its words, in which there may be
 * secrets; a PlugstreamError comes out as it is.
 *
 * @example
 * const secrets: GiveSecrets = ({ secretsRef }, { signal }) => vault.read(secretsRef, { signal })
 */
export type GiveSecrets = (
  request: SecretsRequest,
  options: { readonly signal: AbortSignal },
) => Readonly<Record<string, string>> | undefined | Promise<Readonly<Record<string, string>> | undefined>

/** What goes with a call, where it needs any: waited for no longer than the limits say. @throws as `givenSecrets`. */
export async function secretsOf(
  ports: Pick<VolumePorts, 'secrets'>,
  { secretsRef, ...request }: Omit<SecretsRequest, 'secretsRef'> & { secretsRef: string | undefined },
  limits: Limits,
): Promise<{ secrets?: Secrets }> {
  if (secretsRef === undefined) return {}
  const { doing, signal } = limits
  limits.doing = `waiting for secrets ${JSON.stringify(secretsRef)} for ${request.rpc}`
  let leave = (): void => undefined
  try {
    const given = ports.secrets({ secretsRef, ...request }, signal)
    const left = new Promise<never>((_, reject) => {
      leave = () => reject(signal.reason as Error)
      signal.addEventListener('abort', leave)
    })
    return { secrets: await Promise.race([given, left]) }
  } finally {
    limits.doing = doing
    signal.removeEventListener('abort', leave)
  }
}

/**
 * What `give` gives, in memory of its own.
 *
 * @throws ERR_OPTION_INVALID naming `secretsRef` where there are none of the name, or the field that is no text; ERR_USAGE where it fails.
 */
export async function givenSecrets(
  give: GiveSecrets | undefined,
  request: SecretsRequest,
  signal: AbortSignal,
): Promise<Secrets> {
  const { secretsRef, rpc } = request
  let given: unknown
  try {
    given = await give?.(request, { signal })
  } catch (failure) {
    if (failure instanceof PlugstreamError) throw failure
    // Neither its words nor itself as the cause.
    const message = `secrets ${JSON.stringify(secretsRef)} for ${rpc}: the function that gives them has failed${kindOf(failure)}`
    throw new PlugstreamError('ERR_USAGE', message, { details: { secretsRef, rpc } })
  }
  if (given === undefined || given === null)
    throw invalidOption('secretsRef', secretsRef, `the name of secrets that the host is given (for ${rpc})`)
  if (typeof given !== 'object' || Array.isArray(given))
    throw invalidOption('secrets', Array.isArray(given) ? given : typeof given, 'an object of texts')
  for (const [name, value] of Object.entries(given) as [string, unknown][])
    if (typeof value !== 'string') throw invalidOption(`secrets.${name}`, typeof value, 'a text')
  return { ...(given as Secrets) }
}

/** Which failure it is, as far as plain words say so: ` (Error ECONNREFUSED)`. */
function kindOf(failure: unknown): string {
  if (!(failure instanceof Error)) return ''
  const { name, code } = failure as NodeJS.ErrnoException
  const plain = [name, code].filter(
    (word) => typeof word === 'string' && /^[A-Z][A-Za-z]*$|^[A-Z][A-Z0-9_]*$/.test(word),
  )
  return plain.length === 0 ? '' : ` (${plain.join(' ')})`
}
