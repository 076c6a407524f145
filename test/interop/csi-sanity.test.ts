import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'chai'
import { needs } from '../support/needs.js'
import { Scratch } from '../support/sockets.js'
import { HostpathDriver } from './hostpath-driver.js'
import { unmountBelow } from './mounts.js'
import { needsTools } from './tools.js'

const patienceMs = 240_000

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

/** What no driver can be asked, each with the reason that the report gives. */
const skippedByNature: Readonly<Record<string, string>> = {
  // Marked as pending in csi-sanity itself, which has no such driver to try it with.
  'Controller Service [Controller Server] ListVolumes pagination should detect volumes added between pages and accept tokens when the last volume from a page is deleted':
    '',
}

describe('csi-sanity against the hostpath driver', () => {
  let tools: string
  let scratch: Scratch
  let driver: HostpathDriver | undefined
  before(async function () {
    needs(this, process.platform === 'linux' && process.getuid?.() === 0, 'only root on Linux may mount')
    tools = await needsTools(this)
  })
  beforeEach(() => {
    scratch = new Scratch()
  })
  afterEach(async () => {
    await driver?.[Symbol.asyncDispose]()
    unmountBelow(scratch.path)
    scratch[Symbol.dispose]()
  })

  for (const access of ['mount', 'block'] as const)
    it(`finds nothing wrong with ${access} volumes, and skips nothing that the driver could have`, async function () {
      this.timeout(patienceMs + 30_000)
      const socketPath = scratch.file('csi.sock')
      driver = await HostpathDriver.start(socketPath, {
        'state-dir': scratch.file('data'),
        'max-volumes': '3',
        'node-id': 'node-1',
      })
      const specs = await runSanity(join(tools, 'csi-sanity'), scratch, {
        'csi.endpoint': `unix://${socketPath}`,
        'csi.testvolumeaccesstype': access,
      })
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
async function runSanity(program: string, scratch: Scratch, what: Readonly<Record<string, string>>): Promise<Spec[]> {
  const report = scratch.file('report.json')
  const mutable = scratch.file('mutable.yaml')
  writeFileSync(mutable, 'mode: "0750"\n')
  const flags = {
    ...what,
    'csi.mountdir': scratch.file('mount'),
    'csi.stagingdir': scratch.file('staging'),
    'csi.testvolumemutableparameters': mutable,
    'csi.testnodevolumeattachlimit': true,
    'ginkgo.json-report': report,
    'ginkgo.no-color': true,
  }
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`)
  const output = await new Promise<string>((resolve) => {
    execFile(program, args, { cwd: scratch.path, timeout: patienceMs }, (_, stdout, stderr) => resolve(stdout + stderr))
  })
  try {
    const [{ SpecReports }] = JSON.parse(readFileSync(report, 'utf8')) as [{ SpecReports: Spec[] }]
    return SpecReports.filter(({ LeafNodeType }) => LeafNodeType === 'It')
  } catch {
    throw new Error(`it wrote no report, but ${output}`)
  }
}
