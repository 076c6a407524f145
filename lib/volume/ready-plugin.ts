import type { PluginInfo, PluginType } from '../plugin/plugin.js'
import type { Limits } from './limits.js'
import type { VolumePorts } from './ports.js'

/**
 * The newest healthy instance of a plugin, as soon as there is one. Where time runs out before, the error says what was waited for: a name
 * that nobody has is waited for as well.
 */
export function readyPlugin(
  ports: Pick<VolumePorts, 'isRegistered' | 'ready'>,
  type: PluginType,
  plugin: string,
  limits: Limits,
): Promise<PluginInfo> {
  const what = type === 'csi-controller' ? 'the controller plugin' : 'its plugin'
  limits.doing = () => `waiting for ${what}${ports.isRegistered(type, plugin) ? '' : ', which is not registered'}`
  return ports.ready(type, plugin, limits.signal)
}
