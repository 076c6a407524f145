import { withoutValues } from '../without-values.js'

/** A request on the wire, as far as there may be secrets in it. */
interface MaySecrets {
  secrets?: Readonly<Record<string, string>> | null
  volume_capability?: MayFlags | null
  volume_capabilities?: readonly MayFlags[]
}
interface MayFlags {
  mount?: { mount_flags?: readonly string[] } | null
}

/**
 * A text without what is secret in a request: the values of its secrets, and the mount flags that have a value, which may be a
 * password.
 */
export function withoutSecrets(text: string, request: object): string {
  const { secrets, volume_capability, volume_capabilities = [] } = request as MaySecrets
  const flags = [volume_capability, ...volume_capabilities].flatMap((one) => one?.mount?.mount_flags ?? [])
  const values = [...Object.values(secrets ?? {}), ...flags.filter((flag) => flag.includes('='))]
  return withoutValues(text, values)
}
