import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { processDriver } from '../../../lib/task/process-driver.js'
import { taskDriverSuite } from '../../conformance/task-driver-suite.js'

const scratch = (): Promise<string> => mkdtemp(join(tmpdir(), 'plugstream-'))

taskDriverSuite({ describe, it }, 'processes, with log files', {
  make: async () => {
    const directory = await scratch()
    return { driver: processDriver({ logDir: join(directory, 'logs') }), directory }
  },
  dispose: ({ directory }) => rm(directory, { recursive: true }),
})

taskDriverSuite({ describe, it }, 'processes, with files without a name', {
  make: async () => ({ driver: processDriver(), directory: await scratch() }),
  dispose: ({ directory }) => rm(directory, { recursive: true }),
})
