/** A piece of what a container wrote. */
export interface Frame {
  output: 'stdout' | 'stderr'
  bytes: Buffer
}

const headerBytes = 8

/** The engine sends both outputs over one stream: before each piece a byte that says which, three of zeros, and four for its length. */
export async function* frames(chunks: AsyncIterable<Buffer>): AsyncGenerator<Frame> {
  let rest: Buffer = Buffer.alloc(0)
  for await (const chunk of chunks) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    while (rest.length >= headerBytes) {
      const end = headerBytes + rest.readUInt32BE(4)
      if (rest.length < end) break
      yield { output: rest[0] === 2 ? 'stderr' : 'stdout', bytes: rest.subarray(headerBytes, end) }
      rest = rest.subarray(end)
    }
  }
}
