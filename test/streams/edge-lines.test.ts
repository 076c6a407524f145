import { NEVER, map, type Observable } from 'rxjs'
import { PlugstreamError } from '../../lib/errors.js'
import type { Replacement } from '../../lib/task/replacement.js'
import type { TaskNote } from '../../lib/task/task.js'
import type { VolumeEvent } from '../../lib/volume/volume.js'
import { edgeLines, type EdgeLine, type EdgeSources } from '../../streams/edge-lines.js'
import { marbles } from '../testing/marbles.js'
import { healthEvent, pluginFingerprint, pluginInfo, pluginTask, registryEvent } from './support/values.js'

const quiet: EdgeSources = {
  registryEvent$: NEVER,
  health$: NEVER,
  fingerprint$: NEVER,
  volumeEvent$: NEVER,
  note$: NEVER,
  replacement$: NEVER,
  problem$: NEVER,
}

function linesOf(sources: Partial<EdgeSources>): Observable<EdgeLine> {
  return edgeLines({ ...quiet, ...sources })
}

describe('edgeLines', () => {
  it('never: has no line for nothing', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const health = cold<never>('-')
      expectObservable(linesOf({ health$: health }), '^--!').toBe('-')
      expectSubscribed(health, '^--!')
    }))

  it('empty: ends when all its sources have ended', () =>
    marbles(({ cold, expectObservable }) => {
      const empty = {
        health$: cold<never>('-|'),
        fingerprint$: cold<never>('|'),
        volumeEvent$: cold<never>('|'),
        note$: cold<never>('|'),
        replacement$: cold<never>('|'),
      }
      expectObservable(edgeLines({ ...empty, registryEvent$: cold<never>('--|'), problem$: cold<never>('|') })).toBe(
        '--|',
      )
    }))

  it('one: says what was registered, and which instance is current now', () =>
    marbles(({ cold, expectObservable }) => {
      const plugin = pluginInfo()
      const events = {
        r: registryEvent({ plugin, seq: 7 }),
        t: registryEvent({ plugin, seq: 8, restored: true }),
        d: registryEvent({ kind: 'deregistered', plugin, current: undefined, seq: 9, reason: 'stopping' }),
      }
      const line$ = linesOf({ registryEvent$: cold('-rtd', events) })
      expectObservable(line$, '^----!').toBe('-rtd', {
        r: { noun: 'registry', line: '7 csi-node ebs a1 1.0.0 registered, current a1' },
        t: { noun: 'registry', line: '8 csi-node ebs a1 1.0.0 registered, restored, current a1' },
        d: { noun: 'registry', line: '9 csi-node ebs a1 1.0.0 deregistered, stopping, current none' },
      })
    }))

  it('many: has a line for each of what is told, under its own noun', () =>
    marbles(({ cold, expectObservable }) => {
      const note: TaskNote = {
        task: pluginTask(),
        kind: 'plugin-unhealthy',
        reason: 'socket-missing',
        message: 'no socket at /run/a1/csi.sock',
        at: 0,
      }
      const last = healthEvent({ healthy: false, reason: 'stopped', description: 'its task has stopped', final: true })
      const controller = pluginFingerprint({
        controller: { names: ['PUBLISH', 'LIST'], unknown: [] },
        healthy: false,
        final: true,
      })
      const volume: VolumeEvent = {
        kind: 'mounted',
        plugin: 'ebs',
        volumeId: 'vol-1',
        namespace: 'default',
        allocId: 'web',
        message: 'mounted at /v',
        at: 0,
      }
      const replacement: Replacement = {
        plugin: 'ebs',
        from: { allocId: 'a1', taskName: 'driver' },
        to: { allocId: 'a2', taskName: 'driver' },
        phase: 'failed',
        failure: new PlugstreamError('ERR_ABORTED', 'aborted'),
        at: 0,
      }
      const line$ = linesOf({
        replacement$: cold('-------r', { r: replacement }),
        volumeEvent$: cold('------v', { v: volume }),
        health$: cold('     hl', { h: healthEvent(), l: last }),
        fingerprint$: cold('--fc', { f: pluginFingerprint(), c: controller }),
        note$: cold('       ----n', { n: note }),
        problem$: cold('    -----p', { p: new PlugstreamError('ERR_STORE_WRITE', 'the disk is full') }),
      })
      expectObservable(line$, '^--------!').toBe('hlfcnpvr', {
        h: { noun: 'health', line: 'csi-node ebs a1 healthy, ready, ready' },
        l: { noun: 'health', line: 'csi-node ebs a1 unhealthy, stopped, its task has stopped, final' },
        f: { noun: 'fingerprint', line: 'csi-node ebs a1 healthy, node node-1 STAGE_UNSTAGE_VOLUME' },
        c: {
          noun: 'fingerprint',
          line: 'csi-node ebs a1 unhealthy, controller PUBLISH LIST, node node-1 STAGE_UNSTAGE_VOLUME, final',
        },
        n: { noun: 'task', line: 'a1 driver plugin-unhealthy, no socket at /run/a1/csi.sock' },
        p: { noun: 'host', line: 'ERR_STORE_WRITE the disk is full' },
        r: { noun: 'task', line: 'a1 driver replaced by a2 in ebs, failed, aborted' },
        v: { noun: 'volume', line: 'ebs vol-1 mounted, default, web, mounted at /v' },
      })
    }))

  it('source error: passes it on and leaves the others', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const health = cold<never>('----')
      expectObservable(linesOf({ health$: health, note$: cold<never>('--#') })).toBe('--#')
      expectSubscribed(health, '^-!')
    }))

  it('early unsubscribe: leaves all its sources', () =>
    marbles(({ cold, expectObservable, expectSubscribed }) => {
      const sources = { health$: cold<never>('----'), note$: cold<never>('----'), problem$: cold<never>('----') }
      expectObservable(linesOf(sources), '^--!').toBe('-')
      for (const source of Object.values(sources)) expectSubscribed(source, '^--!')
    }))

  it('says nothing that a secret could be in: of a task and a plugin, only how they are called', () =>
    marbles(({ cold, expectObservable }) => {
      const secret = 'hunter2'
      const plugin = pluginInfo({ options: { taskName: 'driver', password: secret } })
      const task = pluginTask({ env: { PASSWORD: secret } })
      const note: TaskNote = { task, kind: 'plugin-healthy', reason: 'ready', message: 'ready', at: 0 }
      const line$ = linesOf({
        registryEvent$: cold('r', { r: registryEvent({ plugin }) }),
        health$: cold('       -h', { h: healthEvent({ plugin }) }),
        fingerprint$: cold('  --f', { f: pluginFingerprint({ plugin }) }),
        note$: cold('         ---n', { n: note }),
      })
      const tells$ = line$.pipe(map(({ line }) => line.includes(secret)))
      expectObservable(tells$, '^----!').toBe('aaaa', { a: false })
    }))
})
