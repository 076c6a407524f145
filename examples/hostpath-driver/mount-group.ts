import { status } from 'plugstream/csi'
import { run } from './run.js'

/** Gives the files of a volume to a group, by name or number, and with them whatever is made among them later. */
export async function giveToGroup(path: string, group: string): Promise<void> {
  try {
    await run('chgrp', '-R', '--', group, path)
  } catch (failure) {
    throw status('INVALID_ARGUMENT', `volume_mount_group ${group} cannot have the files: ${(failure as Error).message}`)
  }
  await run('chmod', '-R', 'g+rwX', path)
  await run('chmod', 'g+s', path)
}
