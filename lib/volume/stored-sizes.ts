/**
 * A request with the sizes of its capacity range in another form: JSON knows no bigint. @throws what `as` throws.
 *
 * @example withSizes({ capacityRange: { requiredBytes: 1n } }, String) // { capacityRange: { requiredBytes: '1' } }
 */
export function withSizes(request: object, as: (size: string) => string | bigint): object {
  const { capacityRange, ...rest } = request as { capacityRange?: Record<string, string> }
  if (!capacityRange) return rest
  const sizes = Object.entries(capacityRange).filter(([, size]: [string, unknown]) => size !== undefined)
  return { ...rest, capacityRange: Object.fromEntries(sizes.map(([end, size]) => [end, as(size)])) }
}
