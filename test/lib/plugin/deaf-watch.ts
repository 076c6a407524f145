import { watch, unlinkSync } from 'node:fs'
import { watchSocket } from '../../../lib/plugin/socket-watch.js'
import { Scratch, staleSocket } from '../../support/sockets.js'

// Run where there are no directory watches: says what is seen of a socket that comes and goes.
try {
  watch('/').close()
  throw new Error('there are watches left')
} catch (failure) {
  if ((failure as NodeJS.ErrnoException).code !== 'ENOSPC') throw failure
}
const scratch = new Scratch()
const path = scratch.file('csi.sock')
let seen = 0
const stop = watchSocket(path, ({ kind }) => {
  process.stdout.write(`${kind}\n`)
  seen++
  if (seen === 1) void staleSocket(path)
  if (seen === 2) unlinkSync(path)
  if (seen === 3) {
    stop()
    scratch[Symbol.dispose]()
  }
})
