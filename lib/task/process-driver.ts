import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, constants } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { maxLogBytes as defaultMaxLogBytes, stopGraceMs } from '../defaults.js'
import { PlugstreamError } from '../errors.js'
import { fieldsOf, takeOptions } from '../options.js'
import { adoptedLeader } from './adopted-leader.js'
import type { TaskDriver, TaskSpec } from './driver.js'
import { findRun } from './find-run.js'
import { childLeader } from './leader.js'
import { LogFile, taskLogPaths, type TaskLogPaths } from './log-file.js'
import { ProcessHandle } from './process-handle.js'
import { digestOf, hasBegun, recordOf } from './process-journal.js'
import type { ProcessSight } from './process-sight.js'
import type { TaskJournal, TaskRecord } from './task-record.js'
import type { TaskResources } from './task.js'
import { readTaskInput } from './task-spec.js'

export interface ProcessDriverInit {
  /**
   * Where the tasks' log files go (`taskLogPaths`); made where it is missing, for its owner alone. Default: files without a name, which
   * can be read through the handle and are gone with the task.
   */
  logDir?: string | undefined
  /** A log file that is longer is trimmed; one older part of at most this size is kept beside it. Default: 10 MiB. */
  maxLogBytes?: number | undefined
}

const initFields = fieldsOf<ProcessDriverInit>({ logDir: true, maxLogBytes: true })

/**
 * Runs tasks as processes of this host, without a shell, each as the leader of a process group of its own, so that what it starts ends
 * with it. Its output goes to files, not pipes, so that it can outlive its host; `mounts` are not for it.
 *
 * A task sees `PATH HOME USER LANG LC_ALL TMPDIR TZ` of the host, then `resources.env`, then its own `env`, of
 * which the last that has a name wins; nothing else of the host's environment, where secrets are.
 *
 * @throws `start` rejects with ERR_TASK_SPAWN where the program or its directory is not there or not allowed, or the system has no
 * room (`retryable`), and with ERR_OPTION_INVALID where the task is no task.
 * @example runTasks(spec$, processDriver({ logDir: '/var/log/agent' }), ports)
 */
export function processDriver(init: ProcessDriverInit = {}): TaskDriver {
  const { logDir, maxLogBytes = defaultMaxLogBytes } = takeOptions('init', init, initFields)
  const paths = (spec: TaskSpec): TaskLogPaths | undefined =>
    logDir === undefined ? undefined : taskLogPaths(logDir, spec)
  return {
    async start(spec, resources, journal) {
      readTaskInput(spec)
      const logs = await openLogs(spec, paths(spec), maxLogBytes)
      try {
        return await begin(spec, resources, logs, journal)
      } catch (failure) {
        await Promise.allSettled([logs.stdout.close(), logs.stderr.close()])
        throw failure
      }
    },
    async adopt(spec, journal) {
      const record = journal?.get(spec)
      const found = record && (await findRun(record))
      if (!journal || !record || !found) return undefined
      const handle = await adopted(spec, found, record, paths(spec), maxLogBytes)
      if (record.process === undefined) await hasBegun(journal, record, found.pid)
      if (record.digest === digestOf(spec)) return handle
      await handle.stop(spec.stopGraceMs ?? stopGraceMs)
      handle.release()
      return undefined
    },
  }
}

interface Logs {
  stdout: LogFile
  stderr: LogFile
}

async function openLogs(spec: TaskSpec, paths: TaskLogPaths | undefined, maxBytes: number): Promise<Logs> {
  const [stdout, stderr] = await Promise.allSettled([
    LogFile.open(paths?.stdout, maxBytes),
    LogFile.open(paths?.stderr, maxBytes),
  ])
  if (stdout.status === 'fulfilled' && stderr.status === 'fulfilled')
    return { stdout: stdout.value, stderr: stderr.value }
  let failure: unknown
  for (const one of [stdout, stderr]) {
    if (one.status === 'fulfilled') await one.value.close()
    else failure = one.reason
  }
  throw spawnError(spec, `cannot write its log ${paths?.stdout ?? `in ${tmpdir()}`}`, failure)
}

async function adopted(
  spec: TaskSpec,
  found: ProcessSight,
  { outputs }: TaskRecord,
  paths: TaskLogPaths | undefined,
  maxBytes: number,
): Promise<ProcessHandle> {
  const log = async (stream: 'stdout' | 'stderr'): Promise<LogFile> => {
    // What it writes to may have another name than it would have now, or none.
    const own = await LogFile.ofProcess(found.pid, stream, outputs, maxBytes)
    return own ?? LogFile.open(paths?.[stream], maxBytes)
  }
  const logs = { stdout: await log('stdout'), stderr: await log('stderr') }
  return new ProcessHandle(spec, adoptedLeader(found), logs)
}

async function begin(
  spec: TaskSpec,
  resources: TaskResources,
  logs: Logs,
  journal: TaskJournal | undefined,
): Promise<ProcessHandle> {
  const [program, ...args] = spec.command
  const record = journal && recordOf(spec, resources, Object.values(logs))
  if (record) await journal.put(record)
  try {
    const child = spawn(program, args, {
      ...(spec.cwd === undefined ? {} : { cwd: spec.cwd }),
      env: { ...hostEnv(), ...resources.env, ...spec.env },
      detached: true,
      shell: false,
      stdio: ['ignore', logs.stdout.fd, logs.stderr.fd],
    })
    child.on('error', () => undefined) // heard below; one that comes later concerns signals, which do not go through the child
    await once(child, 'spawn')
    const handle = new ProcessHandle(spec, childLeader(child), logs)
    if (record) await hasBegun(journal, record, handle.pid)
    return handle
  } catch (failure) {
    const badDirectory = spec.cwd === undefined ? undefined : await whatIsWrongWith(spec.cwd)
    if (badDirectory !== undefined) throw spawnError(spec, `cannot work in ${spec.cwd}`, badDirectory)
    throw spawnError(spec, `cannot run ${program}`, failure)
  }
}

/** Without these few most programs cannot find their way; none of them is a place for secrets. */
const hostVariables = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TMPDIR', 'TZ']

function hostEnv(): Record<string, string> {
  const found = hostVariables.map((name) => [name, process.env[name]] as const)
  return Object.fromEntries(found.filter((pair): pair is [string, string] => pair[1] !== undefined))
}

/** The system blames a missing directory on the program, so the directory is looked at. */
async function whatIsWrongWith(cwd: string): Promise<unknown> {
  try {
    await access(`${cwd}/.`, constants.X_OK) // the dot: a file is no directory
    return undefined
  } catch (failure) {
    return failure
  }
}

const lackOfRoom = ['EAGAIN', 'EMFILE', 'ENFILE', 'ENOMEM', 'ENOSPC']
const words: Readonly<Record<string, string>> = {
  ENOENT: 'it is not there',
  EACCES: 'permission denied',
  ENOTDIR: 'it is not a directory',
}

/** Names the program and not its arguments, where secrets may be; the cause, which has them, is left out for that reason. */
function spawnError(spec: TaskSpec, what: string, failure: unknown): PlugstreamError {
  const reason = (failure as NodeJS.ErrnoException | undefined)?.code ?? 'unknown'
  const why = words[reason] === undefined ? reason : `${words[reason]} (${reason})`
  return new PlugstreamError('ERR_TASK_SPAWN', `task ${spec.taskName} of alloc ${spec.allocId} ${what}: ${why}`, {
    retryable: lackOfRoom.includes(reason),
    details: { allocId: spec.allocId, taskName: spec.taskName, program: spec.command[0], reason },
  })
}
