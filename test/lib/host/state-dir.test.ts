import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import { makeHostDirectory, storeFile } from '../../../lib/host/state-dir.js'

describe('the state directory', () => {
  let directory: string
  beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'ps-'))))
  afterEach(() => rmSync(directory, { recursive: true }))

  it('is made with what is missing above it, for its owner alone', async () => {
    const stateDir = join(directory, 'a', 'b')
    await makeHostDirectory('stateDir', stateDir)
    expect(statSync(stateDir).mode & 0o777).to.equal(0o700)
    expect(storeFile(stateDir)).to.equal(join(stateDir, 'state.sqlite'))
  })

  it('keeps its mode where it is there already', async () => {
    chmodSync(directory, 0o750)
    await makeHostDirectory('stateDir', directory)
    expect(statSync(directory).mode & 0o777).to.equal(0o750)
  })

  it('that cannot be made is refused by its name', async () => {
    writeFileSync(join(directory, 'file'), '')
    for (const stateDir of [join(directory, 'file'), join(directory, 'file', 'x')]) {
      const failure: unknown = await makeHostDirectory('stateDir', stateDir).catch((thrown: unknown) => thrown)
      expect(failure).to.deep.include({ code: 'ERR_OPTION_INVALID', details: { field: 'stateDir' } })
      expect((failure as Error).message).to.contain(stateDir)
    }
  })
})
