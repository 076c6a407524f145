/** A text without the secrets that are in a request of CSI, which keeps all of them in one field. */
export function withoutSecrets(text: string, request: object): string {
  const { secrets } = request as { secrets?: Readonly<Record<string, string>> | null }
  const values = Object.values(secrets ?? {}).filter((value) => value !== '')
  values.sort((a, b) => b.length - a.length) // so that none is left in parts
  return values.reduce((rest, value) => rest.replaceAll(value, '***'), text)
}
