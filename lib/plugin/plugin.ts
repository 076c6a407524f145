/** A type of plugin. CSI has two; other plugin kinds bring their own. */
export type PluginType = 'csi-controller' | 'csi-node' | (string & {})

/** Names one instance: one alloc serving a plugin. */
export interface PluginRef {
  type: PluginType
  name: string
  allocId: string
}

/** A registered instance. Values of this type are frozen: a change makes a new one. */
export interface PluginInfo extends PluginRef {
  /** What the plugin says of its own version, and of its own name (for CSI: GetPluginInfo). */
  version: string
  provider: string
  connection: { socketPath: string }
  /** `mountPoint` and `containerMountPoint` (the volume root as host and task see it), `taskName`, and what a host adds. */
  options: Readonly<Record<string, string>>
  /** Unix ms of the first registration; kept over updates and restarts. */
  registeredAt: number
}

/** What is given to register an instance; what is left out is empty. */
export type PluginRegistration = PluginRef & { connection: PluginInfo['connection'] } & {
  [Field in Exclude<keyof PluginInfo, keyof PluginRef | 'connection'>]?: PluginInfo[Field] | undefined
}

/** What flows into the registry. */
export type RegistryChange =
  | { kind: 'register'; plugin: PluginRegistration }
  /** What a registered instance says of itself. Registers nothing, and whoever registered it keeps what `register` gave. */
  | { kind: 'update'; ref: PluginRef; version: string; provider: string }
  | { kind: 'deregister'; ref: PluginRef; reason?: string }

/** What flows out of it, after it was saved. */
export interface RegistryEvent {
  kind: 'registered' | 'updated' | 'deregistered'
  /** Exactly the instance the change was about. */
  plugin: PluginInfo
  /** The plugin's current instance (the newest registered one) after the event. */
  current: PluginInfo | undefined
  /** Strictly increasing, also across restarts. */
  seq: number
  /** Unix ms. */
  at: number
  /** True where the event tells of a record read at start. */
  restored: boolean
  reason?: string
}

/** A text that names a plugin (type and name), and one that names an instance; for maps. */
export function pluginKey(plugin: Pick<PluginRef, 'type' | 'name'>): string {
  return JSON.stringify([plugin.type, plugin.name])
}
export function instanceKey(ref: PluginRef): string {
  return JSON.stringify([ref.type, ref.name, ref.allocId])
}

/** The ref alone, without what else a registration carries. */
export function refOf(plugin: PluginRef): PluginRef {
  return { type: plugin.type, name: plugin.name, allocId: plugin.allocId }
}
