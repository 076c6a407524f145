// Writes the TypeScript types of every .proto file to lib/csi/generated, so that no message is described twice.
// The options are those of lib/grpc/proto.ts: what the loader gives at run time is what the types say.
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const out = join(root, 'lib/csi/generated')
const loader = dirname(createRequire(import.meta.url).resolve('@grpc/proto-loader/package.json'))
const generator = join(loader, 'build/bin/proto-loader-gen-types.js')

rmSync(out, { recursive: true, force: true })
mkdirSync(out, { recursive: true })
const { status } = spawnSync(
  process.execPath,
  [
    generator,
    '--keepCase',
    '--longs=String',
    '--enums=String',
    '--defaults',
    '--oneofs',
    '--grpcLib=@grpc/grpc-js',
    '--importFileExtension=.js',
    '--includeDirs=proto', // relative, since it is written into the files; must not stand last, or it takes the files for more of its own
    `--outDir=${out}`,
    'csi/v1/csi.proto',
    'grpc/health/v1/health.proto',
    'pluginregistration/v1/registration.proto',
  ],
  { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] },
)
process.exit(status ?? 1)
