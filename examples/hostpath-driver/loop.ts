// Loop devices: how the file of a block volume comes to be a block device.
import { run } from './run.js'

interface LoopDevice {
  name: string
  ro: boolean | string
  'back-file': string
}

/** The devices of a file; the kernel keeps the account, so that it is right also after this driver was killed. */
export async function loopDevices(file: string): Promise<{ device: string; readonly: boolean }[]> {
  const found = await run('losetup', '--list', '--json', '--output', 'NAME,RO,BACK-FILE')
  const { loopdevices } = JSON.parse(found || '{ "loopdevices": [] }') as { loopdevices: LoopDevice[] }
  return loopdevices
    .filter((device) => [file, `${file} (deleted)`].includes(device['back-file']))
    .map(({ name, ro }) => ({ device: name, readonly: ro === true || ro === '1' }))
}

/** A read-only bind mount of a device would still let writes through: the device itself has to be read-only. */
export async function loopDevice(file: string, readonly: boolean): Promise<string> {
  const existing = (await loopDevices(file)).find((device) => device.readonly === readonly)
  if (existing) return existing.device
  return (await run('losetup', '--find', '--show', ...(readonly ? ['--read-only'] : []), file)).trim()
}

/** Lets the devices see that their file has grown. */
export async function growLoopDevices(file: string): Promise<void> {
  for (const { device } of await loopDevices(file)) await run('losetup', '--set-capacity', device)
}

export async function freeLoopDevices(file: string): Promise<void> {
  for (const { device } of await loopDevices(file)) await run('losetup', '--detach', device)
}
