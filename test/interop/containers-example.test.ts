import { execFile, execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect } from 'chai'
import { makeShared, unmountBelow } from './mounts.js'
import { image, needsContainers, Podman } from './podman.js'

describe('the example with containers', function () {
  this.timeout(120_000)
  let directory: string
  beforeEach(() => (directory = realpathSync(mkdtempSync(join(tmpdir(), 'ps-')))))
  afterEach(() => rmSync(directory, { recursive: true }))

  const run = async (env: Record<string, string>): Promise<string> => {
    const args = ['--import', 'tsx/esm', 'examples/containers.ts', '--once']
    const { stdout } = await promisify(execFile)(process.execPath, args, {
      env: { ...process.env, TMPDIR: directory, ...env },
    })
    expect(readdirSync(directory).filter((name) => !name.startsWith('tsx-'))).to.deep.equal([])
    return stdout
  }

  it('shows a mount that outlives its host, which takes the container over again', async function () {
    needsContainers(this)
    await using podman = await Podman.start()
    makeShared(directory)
    try {
      const told = await run({ DOCKER_HOST: `unix://${podman.socketPath}`, IMAGE: image })
      expect(told).to.match(
        /prestart[^]*started (\d+)[^]*seen here: \/[^]*prestart[^]*started \1[^]*reads: written by the first host/,
      )
      expect(await podman.docker.listContainers({ all: true })).to.deep.equal([])
    } finally {
      unmountBelow(directory)
      execFileSync('umount', [directory])
    }
  })

  it('says that there is no engine', async () => {
    expect(await run({ DOCKER_HOST: `unix://${join(directory, 'none.sock')}` })).to.match(
      /^no containers here: .*none\.sock/,
    )
  })
})
