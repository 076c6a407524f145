// The registry by itself: an Observer of changes, a source of events, and what it knows after a restart.
//
//   node --import tsx/esm examples/registry-by-hand.ts
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Registry, sqliteStore, type PluginRegistration, type RegistryChange } from 'plugstream'
import { merge, Subject } from 'rxjs'

const scratch = await mkdtemp(join(tmpdir(), 'plugstream-registry-'))
const file = join(scratch, 'state.sqlite')
const greeter = (allocId: string, version: string): PluginRegistration => ({
  type: 'greeter',
  name: 'hello',
  allocId,
  version,
  connection: { socketPath: `/run/hello/${allocId}.sock` },
})

const store = await sqliteStore({ file })
const registry = await Registry.open({
  store,
  dispensers: { greeter: ({ allocId, version }) => ({ greet: () => `hello from ${allocId}, version ${version}` }) },
})
registry.event$.subscribe(({ seq, kind, plugin, current }) => {
  console.log(`#${seq} ${kind} ${plugin.allocId}; current is ${current?.allocId ?? 'none'}`)
})

// Two streams of changes, and the whole wiring.
const register$ = new Subject<RegistryChange>()
const deregister$ = new Subject<RegistryChange>()
merge(register$, deregister$).subscribe(registry)
register$.next({ kind: 'register', plugin: greeter('old', '1.0.0') })
await registry.waitFor('greeter', 'hello', { timeoutMs: 5_000 })

// By hand: resolves when it is saved, and gives back the way to undo just this registration.
const newer = await registry.register(greeter('new', '2.0.0'))
console.log(registry.dispense<{ greet(): string }>('greeter', 'hello').greet())
await newer.deregister('no longer wanted')
console.log(registry.dispense<{ greet(): string }>('greeter', 'hello').greet())
await registry.close()
await store.close()

// The next process finds what was saved.
const again = await sqliteStore({ file })
const restored = await Registry.open({ store: again })
restored.watch$.subscribe(({ seq, plugin, restored: fromStore }) => {
  console.log(`#${seq} ${plugin.allocId} ${plugin.version}${fromStore ? ', restored' : ''}`)
})
await restored.close()
await again.close()
await rm(scratch, { recursive: true, force: true })
