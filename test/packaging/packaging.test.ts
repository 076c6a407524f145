import { copyFileSync, existsSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { expect } from 'chai'
import { InstalledPackage, manifestOf, root } from './installed-package.js'
import { loadedPackages, withDependencies } from './loaded-packages.js'

const six = ['@grpc/grpc-js', '@grpc/proto-loader', '@keyv/sqlite', 'debug', 'keyv', 'rxjs']

describe('the packed package', function () {
  this.timeout(120_000)
  let installed: InstalledPackage

  before(async () => {
    installed = await InstalledPackage.install()
  })
  after(() => installed.remove())

  it('has the code, its types, the protos and the papers, and nothing else', () => {
    const papers = ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']
    const code = /^dist\/(lib|streams|test\/(testing|conformance))\/.+\.(js|js\.map|d\.ts)$/
    expect(installed.files).to.include.members([
      ...papers,
      'proto/csi/v1/csi.proto',
      'proto/grpc/health/v1/health.proto',
    ])
    expect(
      installed.files.filter((file) => !papers.includes(file) && !code.test(file) && !/^proto\/.+\.proto$/.test(file)),
    ).to.be.empty
  })

  it('depends on the six packages', () => {
    expect(Object.keys(manifestOf(root).dependencies ?? {}).sort()).to.deep.equal(six)
  })

  it('finds its protos from where it is installed', async () => {
    const proto = join(installed.home, 'dist/lib/csi/proto.js')
    const say = '({ csiProto }) => console.log(Object.keys(csiProto().Identity.service).join())'
    const path = JSON.stringify(proto)
    expect(await installed.node(['-e', `import(${path}).then(${say})`])).to.contain('GetPluginInfo')
    expect(await installed.node(['-e', `(${say})(require(${path}))`])).to.contain('GetPluginInfo')
  })

  it('loads, by its main entry, nothing but the six packages and what they depend on', async () => {
    const { own, all } = await loadedPackages(installed)
    expect([...own].filter((name) => name !== 'plugstream' && !six.includes(name))).to.be.empty
    const known = withDependencies(six).add('plugstream')
    expect([...all].filter((name) => !known.has(name))).to.be.empty
    expect(all).to.include('rxjs').and.include('@grpc/grpc-js')
  })

  for (const [path, target] of Object.entries(manifestOf(root).exports)) {
    const name = `plugstream${path.slice(1)}`

    it(`gives ${name} to import and require, with types`, async () => {
      const files = typeof target === 'string' ? [target] : Object.values(target)
      expect(files.filter((file) => !existsSync(join(installed.home, file)))).to.be.empty
      const keys = `m => console.log(Object.keys(m).filter((key) => key !== 'module.exports').sort().join())`
      const how = name.endsWith('.json') ? ', { with: { type: "json" } }' : ''
      const required = await installed.node(['-e', `(${keys})(require('${name}'))`])
      const imported = await installed.node(['-e', `import('${name}'${how}).then(m => m.default ?? m).then(${keys})`])
      expect(required.trim()).to.not.be.empty
      expect(imported).to.equal(required)
    })
  }

  describe('in a program of somebody else', () => {
    const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
    const compilerOptions = {
      target: 'es2022',
      module: 'nodenext',
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck: false,
      types: ['node'],
    }

    let complaints: string

    before(async () => {
      const consumer = join(root, 'test/packaging/consumers/consumer.ts')
      copyFileSync(consumer, join(installed.directory, 'consumer.mts'))
      copyFileSync(consumer, join(installed.directory, 'consumer.cts'))
      writeFileSync(
        join(installed.directory, 'tsconfig.json'),
        JSON.stringify({ compilerOptions, include: ['consumer.*'] }),
      )
      complaints = await complaintsOf([tsc])
    })

    it('has types that fit ES modules and CommonJS, Keyv of either kind included', async () => {
      expect(complaints).to.equal('')
      expect(await complaintsOf([tsc, '--noEmit', '--module', 'node20'])).to.equal('')
    })

    for (const kind of ['mjs', 'cjs']) {
      it(`runs as .${kind}, with the Keyv of that kind`, async () => {
        const words = JSON.parse(await installed.node([`consumer.${kind}`])) as unknown[]
        const streams = ['function', 'function', 'function']
        expect(words).to.deep.equal([
          'registered',
          'a',
          'ebs',
          3,
          words[4],
          'ERR_TIMEOUT',
          true,
          'function',
          ...streams,
        ])
        expect(words[4]).to.be.a('number')
      })
    }

    function complaintsOf(args: string[]): Promise<string> {
      return installed.node(args).catch((failure: unknown) => (failure as { stdout: string }).stdout)
    }
  })
})
