import type { CsiClient } from '../csi/client.js'

/** The calls of a controller that change something. */
export type ControllerCall =
  | 'createVolume'
  | 'deleteVolume'
  | 'controllerPublishVolume'
  | 'controllerUnpublishVolume'
  | 'controllerExpandVolume'
  | 'controllerModifyVolume'
  | 'createSnapshot'
  | 'deleteSnapshot'
  | 'createVolumeGroupSnapshot'
  | 'deleteVolumeGroupSnapshot'

/** What such a call takes: the request of CSI, the plugin, and the name of its secrets in the place of them. */
export type ControllerRequest<Call extends ControllerCall> = Omit<
  NonNullable<Parameters<CsiClient[Call]>[0]>,
  'secrets'
> & { plugin: string; secretsRef?: string | undefined }

export type ControllerAnswer<Call extends ControllerCall> = Awaited<ReturnType<CsiClient[Call]>>
