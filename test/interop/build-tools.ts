// Builds the programs in Go ahead of the tests: node --import tsx/esm test/interop/build-tools.ts
import { tools } from './tools.js'

process.stdout.write(`the programs in Go are in ${await tools()}\n`)
