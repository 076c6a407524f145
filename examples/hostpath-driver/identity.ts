import type { CsiServices } from 'plugstream/csi'

interface Who {
  name: string
  version: string
  hasController: boolean
}

export function identity({ name, version, hasController }: Who): CsiServices['identity'] {
  const services = [
    ...(hasController
      ? ([
          'CONTROLLER_SERVICE',
          'GROUP_CONTROLLER_SERVICE',
          'SNAPSHOT_METADATA_SERVICE',
          'SNAPSHOT_ACCESSIBILITY_CONSTRAINTS',
        ] as const)
      : []),
    'VOLUME_ACCESSIBILITY_CONSTRAINTS' as const,
  ]
  return {
    GetPluginInfo: () => ({ name, vendor_version: version }),
    GetPluginCapabilities: () => ({
      capabilities: [
        ...services.map((type) => ({ service: { type } })),
        { volume_expansion: { type: 'ONLINE' as const } },
      ],
    }),
    Probe: () => ({ ready: { value: true } }),
  }
}
