import { readFileSync } from 'node:fs'

/** Names the start of the machine since which everything runs and is mounted. Nothing where the system has none. */
export function bootId(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
  } catch {
    return undefined // no Linux
  }
}
