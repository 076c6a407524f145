/** A host with one task, which it leaves as the second argument says; the first is the directory it works in. */
import { processDriver } from '../../../../lib/task/process-driver.js'

const [directory = '', how] = process.argv.slice(2)
const handle = await processDriver({ logDir: directory }).start(
  {
    allocId: 'a',
    taskName: 't',
    isolation: 'none',
    cwd: directory,
    command: [
      '/bin/sh',
      '-c',
      'while [ -d "$PWD" ] && [ ! -e end ]; do echo on; echo on >&2; sleep 0.01; done; : > ended',
    ],
  },
  { socketPath: '', env: {}, mounts: [] },
)
console.log(handle.pid)
if (how === 'killed') process.kill(process.pid, 'SIGKILL')
if (how === 'stop') await handle.stop(60_000)
handle.release()
