/** Every number the library chooses by itself, with the reason for it. All can be given to `openHost({ timing })`. */
export interface Timing {
  /** Pause between two probes of a healthy plugin. Finds a plugin that hangs; everything else is learned from events. */
  heartbeatMs: number
  /** Longest pause between two looks at an unhealthy plugin: recovery is seen within a second where no event tells of it. */
  unhealthyBeatMs: number
  /** How long one Probe may take. With the second look that follows a timeout and `heartbeatMs`, a hang is known in 10 s at worst. */
  probeTimeoutMs: number
  /** A lost connection is looked into at once, but not more than once in this time: some drivers close idle connections all day. */
  relookMs: number
  /** How often a healthy plugin is asked again what it can do: attach limits and topology move while it runs. */
  fingerprintIntervalMs: number
  /** Deadline of every other call to a plugin. */
  rpcTimeoutMs: number
  /** How long a restored instance that no task claims may stay unreachable before it is given up as lost. */
  restoreGraceMs: number
  /** How long `close()` waits for calls in flight, and for the store: what hangs must not hang the host. */
  closeTimeoutMs: number
  /** How long a plugin that took the place of another has to stay well before the old one is given up. */
  bakeMs: number
  /** How long calls in flight may go on before the instance that has them is stopped for another one. */
  drainMs: number
  /** How long calls may be held back while one instance is stopped and another one started; then they fail as they would without it. */
  holdMs: number
}

export const defaultTiming: Readonly<Timing> = {
  heartbeatMs: 4_000,
  unhealthyBeatMs: 1_000,
  probeTimeoutMs: 3_000,
  relookMs: 1_000,
  fingerprintIntervalMs: 30_000,
  rpcTimeoutMs: 10_000,
  restoreGraceMs: 60_000,
  closeTimeoutMs: 5_000,
  // A hang is known in 10 s at worst, and one that began at the end of them is to be known, too.
  bakeMs: 15_000,
  // What changes nothing has its deadline by then. What changes something, and takes longer, is made again on the new instance.
  drainMs: 10_000,
  // Both waits for an end (calls, then the process) and a start that is twice as slow as any seen. Callers have deadlines of their own.
  holdMs: 60_000,
}

/**
 * A plugin that tells of a change is looked at at once, and then at most this often: an edge is not felt to be late by so much, and one
 * that tells of a thousand a second keeps no core busy.
 */
export const toldLookMs = 20

/** First pause between two looks at a socket that does not answer yet; grows to `unhealthyBeatMs`. Short, since a dial costs 0.2 ms. */
export const firstLookAgainMs = 20
/** Growth of that pause. 20 ms reaches one second in nine looks. */
export const lookAgainFactor = 1.6

/**
 * How often a call is made that a closing connection loses, or refuses. A server that closes idle connections after some milliseconds
 * may well do so to two calls in a row on a busy machine, and to four only if nothing can be had from it.
 */
export const lostCallTries = 4

/** How long a plugin may have no socket, no answer or errors before its task is asked to restart. Nomad's default. */
export const healthTimeoutMs = 30_000
/** How long a plugin may answer that it is not ready yet. The CSI specification says this is no cause for a restart, so: patience. */
export const initTimeoutMs = 300_000
/** Where a task sees the directory of its socket, and the one of its volumes. Nomad's defaults. */
export const mountDir = '/csi'
export const stagePublishBaseDir = '/local/csi'

/** The node snapshot is sent at once, then at most once in this time: a burst of changes is one picture, not fifty. */
export const snapshotIntervalMs = 50

/** A file's stat under the directory watch: inotify goes deaf when the directory is replaced, and some file systems have none. */
export const socketStatIntervalMs = 2_000

/** The same where no event can tell: the system's watches are used up, or the directory may not be read. */
export const deafSocketStatIntervalMs = 200
/** A connect to a unix socket is answered by the kernel at once; only a file system that hangs takes longer than this. */
export const dialTimeoutMs = 1_000

/**
 * How long a registration socket may be missing before its plugin is deregistered. A registrar that starts removes the socket of the one
 * before it and binds its own, which takes a millisecond, or the tenths of a second that a busy machine lets it wait.
 */
export const registrationGoneMs = 500
/** Pause before a registrar that does not answer is asked again; doubles up to the second figure. */
export const registrarRetryMs = 100
export const registrarRetryMaxMs = 1_000
/** The same for a socket that nobody listens on, or somebody who is no registrar: neither changes but with another socket. */
export const deadRegistrarRetryMaxMs = 60_000

/** Longest path of a unix socket in bytes. Node 20 cuts longer ones without a word and can so reach another plugin's socket. */
export const socketPathLimitBytes = process.platform === 'darwin' ? 103 : 107

/** Sequence numbers are reserved in the store in blocks of this size, so that they grow over restarts without a write each. */
export const seqBlock = 1_000

/** How long a store may take for a save before that is told as a problem. It is waited for all the same: what it does is unknown. */
export const storeStallMs = 5_000

/** Pause before a store that could not save is tried again; doubles up to the second figure. */
export const storeRetryMs = 100
export const storeRetryMaxMs = 5_000

/** How many changes wait for a slow reader before they are dropped for a fresh snapshot: some seconds of a busy host, in a megabyte. */
export const outletBufferCount = 1_000

/**
 * What becomes of a task that ends by itself: it comes back, also after exit code 0, since a plugin is a service and many drivers call
 * any SIGTERM a success. The first restart comes at once, as most that died once live on; the eighth after a minute and a half, by when
 * what it waited for at boot is there. One that then still fails is held, so that it does not fill the disk with logs for weeks. A
 * run of two minutes is taken for stable.
 */
export const restartDefaults = {
  mode: 'always',
  minDelayMs: 100,
  maxDelayMs: 30_000,
  factor: 3,
  jitter: 0.2,
  attempts: 8,
  windowMs: 600_000,
  stableMs: 120_000,
} as const

/** How long a task may take to end after SIGTERM before it is killed. Drivers that clean up were seen to take under a second. */
export const stopGraceMs = 5_000
/** Pause before a driver that failed to stop a run is asked again. */
export const stopAgainMs = 1_000
/** Pause before a driver that could not look for a run to take over is asked again. */
export const adoptAgainMs = 1_000

/** SIGKILL takes effect at once, except on what hangs in the kernel: after this time the host's process does not stay for it. */
export const killPatienceMs = 5_000
/** Pauses between two looks for what is left of a process group, whose members tell nobody that they end: the first, and the longest. */
export const groupLookMs = 5
export const groupLookMaxMs = 200
/**
 * Pause between two looks for a process that an earlier host began: the system tells only a parent that it ends. A lost connection has it
 * looked for at once, so that this finds the end of tasks that have none. A look costs some microseconds.
 */
export const adoptedLookMs = 500

/** A log file of a task is trimmed when it is longer: some hours of a talkative plugin, and at most four times this a task on disk. */
export const maxLogBytes = 10_485_760
/** How often it is looked at. At 100 MB a second, which is as fast as a disk, half a gigabyte is written in between. */
export const logLookMs = 5_000

/** How many of the host's own problems are kept for who asks later. */
export const problemCount = 100

/**
 * Deadline of a call to a CSI plugin that changes something, retries included: a disk takes its time to be attached and formatted. The
 * time Nomad and Kubernetes give it.
 */
export const csiOperationTimeoutMs = 120_000
/**
 * One attempt of such a call may take this long, or half of the caller's time where that is more: one that got lost is made once more.
 * Shorter attempts do harm: drivers in Go end what they began, a mkfs too, when their caller gives up.
 */
export const csiAttemptMs = 60_000

/**
 * What is worth another try of a CSI call, and after which pauses. A plugin that restarts is back in some tens of ms, so UNAVAILABLE
 * begins there. ABORTED says that the same operation is still running: asking more often makes it no faster. RESOURCE_EXHAUSTED is a
 * full disk or a node at its limit, which seldom passes while a caller waits.
 */
export const csiRetries = {
  UNAVAILABLE: { minDelayMs: 50, maxDelayMs: 2_000, retries: Infinity },
  DEADLINE_EXCEEDED: { minDelayMs: 200, maxDelayMs: 5_000, retries: Infinity },
  ABORTED: { minDelayMs: 500, maxDelayMs: 10_000, retries: Infinity },
  RESOURCE_EXHAUSTED: { minDelayMs: 500, maxDelayMs: 5_000, retries: 3 },
} as const

/** A list call whose plugin gives this many pages without an entry one after the other is given up: it would go on for ever. */
export const csiEmptyPages = 100

/**
 * How long a look at a volume's path may take before it counts as hung. The process that looks is ready in 40 ms, in a second on a busy
 * machine, and a live server far away answers within another; nobody waits for it meanwhile.
 */
export const pathLookMs = 5_000

/** Longest id of a volume. The specification has 128 bytes for it; drivers put servers, shares and names together that come to more. */
export const volumeIdLimitBytes = 1_024
/** How many volumes of one plugin are worked at at the same time. Each may hang, and the others still have room; more would be a storm. */
export const volumesAtOnce = 64
/** A call that is part of such work may take this much longer: its caller hears that the time is over, and not that a call has failed. */
export const volumeCallMarginMs = 50
/** How long taking back a mount that failed may take before its caller is told of the failure; it goes on behind. */
export const volumeUndoMs = 10_000
/** Pause before a volume that could not be brought to where it should be is tried again; doubles up to the second figure. */
export const volumeRetryMs = 1_000
export const volumeRetryMaxMs = 60_000

/** Pause before a container engine, or another source of task events, that does not answer is asked again. */
export const engineAgainMs = 500
/** How long the last words of a container that has ended may take from the engine: some look for them four times a second. */
export const logDrainMs = 2_000
