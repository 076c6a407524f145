import { expect } from 'chai'
import { frames } from '../../../lib/docker/frames.js'

function frame(output: number, text: string): Buffer {
  const bytes = Buffer.from(text)
  const header = Buffer.from([output, 0, 0, 0, 0, 0, 0, 0])
  header.writeUInt32BE(bytes.length, 4)
  return Buffer.concat([header, bytes])
}

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size))
}

describe('what an engine sends of a log', () => {
  const whole = Buffer.concat([frame(1, 'ä日\n'), frame(2, ''), frame(2, 'trouble'), frame(1, 'x'.repeat(300))])

  for (const size of [1, 3, 8, 9, 10_000])
    it(`is told apart where it comes in pieces of ${size} bytes`, async () => {
      const told: [string, string][] = []
      for await (const { output, bytes } of frames(inPieces(whole, size))) told.push([output, bytes.toString()])
      expect(told).to.deep.equal([
        ['stdout', 'ä日\n'],
        ['stderr', ''],
        ['stderr', 'trouble'],
        ['stdout', 'x'.repeat(300)],
      ])
    })
})
