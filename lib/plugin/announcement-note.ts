import { PlugstreamError } from '../errors.js'
import type { Announcement } from './announcement.js'
import { instanceKey, type PluginRef } from './plugin.js'

/** What becomes of an announcement: an instance that is registered, or why there is none. */
export type AnnouncementVerdict = PluginRef | PlugstreamError

/** What became of what is announced over one registration socket. */
export type AnnouncementNote = { socketPath: string } & (
  | { kind: 'registered'; ref: PluginRef }
  /** Nothing could be registered, or not yet: it is tried again whenever there is reason to. */
  | { kind: 'failed'; failure: PlugstreamError }
  /** Its socket is gone, and so is what it had registered. */
  | { kind: 'gone' }
)

export function noteOf(socketPath: string, verdict: AnnouncementVerdict): AnnouncementNote {
  return verdict instanceof PlugstreamError
    ? { socketPath, kind: 'failed', failure: verdict }
    : { socketPath, kind: 'registered', ref: verdict }
}

export function noteOfUnseen({ path, description }: { path: string; description: string }): AnnouncementNote {
  const message = `registration sockets cannot be looked for at ${path}: ${description}`
  return noteOf(path, new PlugstreamError('ERR_SOCKET', message))
}

/** Two notes of one socket say the same. */
export function isSameNote(a: AnnouncementNote, b: AnnouncementNote): boolean {
  return textOf(a) === textOf(b)
}

export function notReady({ name, endpoint }: Announcement, why: string): PlugstreamError {
  const message = `the driver that was announced as ${JSON.stringify(name)} at ${endpoint} ${why}`
  return new PlugstreamError('ERR_PLUGIN_NOT_READY', message, { retryable: true, details: { name, endpoint } })
}

export function nameTaken({ name }: Announcement, holder: string): PlugstreamError {
  const message = `the name ${JSON.stringify(name)} is taken by the driver that was announced at ${holder}`
  return new PlugstreamError('ERR_PLUGIN_CONFLICT', message, { retryable: true, details: { name, holder } })
}

function textOf(note: AnnouncementNote): string {
  if (note.kind === 'failed') return note.failure.message
  return note.kind === 'registered' ? instanceKey(note.ref) : note.kind
}
