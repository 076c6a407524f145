const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const

/** Milliseconds of a duration as Nomad writes them: `30s`, `1m30s`, `1.5h`, `500ms`. Undefined where it is none. */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(text)) return undefined
  let totalMs = 0
  for (const [, amount, unit] of text.matchAll(/([\d.]+)(ms|s|m|h)/g))
    totalMs += Number(amount) * unitMs[unit as keyof typeof unitMs]
  return totalMs
}
