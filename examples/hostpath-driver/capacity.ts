import { status } from 'plugstream/csi'
import type { Kind } from './state.js'

const defaultCapacityBytes = 1n << 30n
/** Well below what any file system of today takes as one file. */
export const maxCapacityBytes = 8n << 40n
/** A block device has whole blocks. */
const blockBytes = 4096n

export interface Bounds {
  atLeast: bigint
  atMost: bigint
}

export function boundsOf(range: { required_bytes: string; limit_bytes: string } | null): Bounds {
  const atLeast = BigInt(range?.required_bytes ?? 0)
  const limit = BigInt(range?.limit_bytes ?? 0) // 0: no limit
  const atMost = limit === 0n || limit > maxCapacityBytes ? maxCapacityBytes : limit
  if (atLeast < 0n || limit < 0n || atLeast > atMost) throw outOfRange(atLeast, atMost)
  return { atLeast, atMost }
}

export function isWithin(capacityBytes: string, { atLeast, atMost }: Bounds): boolean {
  return BigInt(capacityBytes) >= atLeast && BigInt(capacityBytes) <= atMost
}

/** The capacity of a volume that is made or grown; `smallest` is what it has to hold already. */
export function chooseCapacity({ atLeast, atMost }: Bounds, kind: Kind, smallest = 0n): bigint {
  const usual = atMost < defaultCapacityBytes ? atMost : defaultCapacityBytes
  const wanted = (atLeast > smallest ? atLeast : smallest) || usual
  const chosen = kind === 'block' ? ((wanted + blockBytes - 1n) / blockBytes) * blockBytes : wanted
  if (chosen > atMost) throw outOfRange(chosen, atMost)
  return chosen
}

function outOfRange(atLeast: bigint, atMost: bigint): Error {
  return status('OUT_OF_RANGE', `no volume has at least ${atLeast} and at most ${atMost} bytes`)
}
