import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const mocha = createRequire(import.meta.url).resolve('mocha/bin/mocha.js')
const root = fileURLToPath(new URL('../..', import.meta.url))

describe('a suite that leaves something open', () => {
  const directory = mkdtempSync(join(tmpdir(), 'plugstream-'))
  after(() => rmSync(directory, { recursive: true }))

  it('fails, and the suites after it do not', async () => {
    const file = join(directory, 'leaky.cjs')
    writeFileSync(
      file,
      `let timer
      describe('tidy', () => it('passes', () => {}))
      describe('leaky', () => { it('passes', () => { timer = setTimeout(() => {}, 600_000) }); after(() => {}) })
      describe('tidy too', () => it('passes', () => clearTimeout(timer)))`,
    )
    const output = await run([
      '--no-config',
      '--node-option',
      'import=tsx/esm',
      '--require',
      'test/support/leaves-nothing.ts',
      file,
    ])
    expect(output).to.contain('3 passing').and.contain('1 failing').and.contain('left open after "leaky": Timeout')
  })
})

function run(args: string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(process.execPath, [mocha, ...args], { cwd: root }, (_, stdout, stderr) => resolve(stdout + stderr))
  })
}
