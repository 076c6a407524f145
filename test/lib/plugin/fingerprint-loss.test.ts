import { expect } from 'chai'
import type { NodeFacts } from '../../../lib/plugin/fingerprint.js'
import { lostBetween, type PluginHalf } from '../../../lib/plugin/fingerprint-loss.js'

const half = (overrides: Partial<PluginHalf> = {}): PluginHalf => ({
  provider: 'a.example',
  requiresControllerPlugin: false,
  requiresTopologies: false,
  ...overrides,
})
const node = (overrides: Partial<NodeFacts> = {}): PluginHalf =>
  half({ node: { id: 'n1', names: [], unknown: [], ...overrides } })
const controller = (names: string[], unknown: number[] = []): PluginHalf => half({ controller: { names, unknown } })

describe('lostBetween', () => {
  for (const [what, before, after, lost] of [
    ['a capability of a controller', controller(['A', 'B']), controller(['B']), ['capability A']],
    ['one without a name', controller([], [7, 8]), controller([], [8]), ['capability 7']],
    ['all of them', controller(['A'], [7]), half(), ['capability A', 'capability 7']],
    ['a capability of a node', node({ names: ['A'] }), node(), ['capability A']],
    ['a service', half({ requiresControllerPlugin: true }), half(), ['capability CONTROLLER_SERVICE']],
    ['topology', half({ requiresTopologies: true }), half(), ['capability VOLUME_ACCESSIBILITY_CONSTRAINTS']],
    ['the node id', node(), node({ id: 'n2' }), ['node id n1 (it would be n2)']],
    ['the node', node({ names: ['A'] }), half(), ['capability A', 'node id n1 (it would be none)']],
    ['room', node({ maxVolumes: 8 }), node({ maxVolumes: 7 }), ['room for 8 volumes (it would be 7)']],
    ['having no limit', node(), node({ maxVolumes: 7 }), ['room for any number of volumes (it would be 7)']],
    ['a segment', node({ topology: { zone: 'a', rack: '1' } }), node({ topology: { zone: 'a' } }), ['topology rack 1 (it would be none)']], // prettier-ignore
    ['its place', node({ topology: { zone: 'a' } }), node({ topology: { zone: 'b' } }), ['topology zone a (it would be b)']], // prettier-ignore
    ['every segment', node({ topology: { zone: 'a' } }), node(), ['topology zone a (it would be none)']],
    ['its provider', half(), half({ provider: 'b.example' }), ['provider a.example (it would be b.example)']],
  ] as const satisfies [string, PluginHalf, PluginHalf, string[]][])
    it(`names ${what}`, () => {
      expect(lostBetween(before, after)).to.deep.equal(lost)
    })

  for (const [what, before, after] of [
    ['more capabilities, in another order', controller(['A', 'B'], [7]), controller(['C', 'B', 'A'], [8, 7])],
    ['a controller that is needed now', half(), half({ requiresControllerPlugin: true })],
    ['more room', node({ maxVolumes: 7 }), node({ maxVolumes: 8 })],
    ['no limit any more', node({ maxVolumes: 7 }), node()],
    ['more segments', node({ topology: { zone: 'a' } }), node({ topology: { rack: '1', zone: 'a' } })],
    ['topology where there was none', node(), node({ topology: { zone: 'a' } })],
    ['the same', node({ names: ['A'], maxVolumes: 7 }), node({ names: ['A'], maxVolumes: 7 })],
  ] as const satisfies [string, PluginHalf, PluginHalf][])
    it(`takes it for no loss: ${what}`, () => {
      expect(lostBetween(before, after)).to.deep.equal([])
    })
})
