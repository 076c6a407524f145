import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { Scratch } from '../support/sockets.js'
import { HostpathDriver } from './hostpath-driver.js'
import { unmountBelow } from './mounts.js'
import { needsTools } from './tools.js'

/** One spec as the report of Ginkgo tells it. */
interface Spec {
  ContainerHierarchyTexts: readonly string[] | null
  LeafNodeType: string
  LeafNodeText: string
  State: 'passed' | 'failed' | 'skipped' | 'pending' | 'panicked' | 'timedout' | 'interrupted' | 'aborted'
  Failure?: { Message: string }
}

const nameOf = ({ ContainerHierarchyTexts, LeafNodeText }: Spec): string =>
  [...(ContainerHierarchyTexts ?? []), LeafNodeText].join(' ')
const reasonOf = ({ Failure }: Spec): string => Failure?.Message ?? ''

/** What no driver can be asked that has what this one has: why each is skipped, and by what name. */
const skippedByNature: Readonly<Record<string, string>> = {}

describe('csi-sanity against the hostpath driver', () => {
  let tools: string
  let scratch: Scratch
  let driver: HostpathDriver | undefined
  before(async function () {
    tools = await needsTools(this)
    scratch = new Scratch()
  })
  afterEach(async () => {
    await driver?.[Symbol.asyncDispose]()
    if (process.platform === 'linux') unmountBelow(scratch.path)
    scratch[Symbol.dispose]()
  })

  it('finds nothing wrong, and skips nothing that the driver could have', async function () {
    this.timeout(300_000)
    const socketPath = scratch.file('csi.sock')
    driver = await HostpathDriver.start(socketPath, {
      'state-dir': scratch.file('data'),
      'max-volumes': '3',
      'node-id': 'node-1',
    })
    const specs = await runSanity(join(tools, 'csi-sanity'), socketPath, scratch)
    const which = (...states: Spec['State'][]): Spec[] => specs.filter(({ State }) => states.includes(State))
    const [passed, skipped] = [which('passed'), which('skipped', 'pending')]
    const failed = specs.filter((spec) => !passed.includes(spec) && !skipped.includes(spec))
    process.stdout.write(
      `      ran ${passed.length + failed.length}, passed ${passed.length}, failed ${failed.length}, skipped ${skipped.length}\n`,
    )

    expect(failed.map((spec) => `${nameOf(spec)}: ${reasonOf(spec)}`)).to.deep.equal([])
    expect(Object.fromEntries(skipped.map((spec) => [nameOf(spec), reasonOf(spec)]))).to.deep.equal(skippedByNature)
    expect(passed).not.to.deep.equal([])
  })
})

/** Its exit code says only what the report says better. */
async function runSanity(program: string, socketPath: string, scratch: Scratch): Promise<Spec[]> {
  const report = scratch.file('report.json')
  const flags = {
    'csi.endpoint': `unix://${socketPath}`,
    'csi.mountdir': scratch.file('mount'),
    'csi.stagingdir': scratch.file('staging'),
    'csi.testnodevolumeattachlimit': true,
    'ginkgo.json-report': report,
    'ginkgo.no-color': true,
  }
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`)
  const output = await new Promise<string>((resolve) => {
    execFile(program, args, { cwd: scratch.path, timeout: 240_000 }, (_, stdout, stderr) => resolve(stdout + stderr))
  })
  try {
    const [{ SpecReports }] = JSON.parse(readFileSync(report, 'utf8')) as [{ SpecReports: Spec[] }]
    return SpecReports.filter(({ LeafNodeType }) => LeafNodeType === 'It')
  } catch {
    throw new Error(`it wrote no report, but ${output}`)
  }
}
