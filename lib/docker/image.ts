import type Dockerode from 'dockerode'
import { PlugstreamError } from '../errors.js'
import { statusOf, wordsOf } from './failure.js'
import type { ContainerSettings } from './container-task.js'

/**
 * Resolves when the engine has the image.
 *
 * @throws ERR_CONTAINER, in the engine's words, where it is not there and cannot be had.
 */
export async function imagePresent(docker: Dockerode, { image, pull = 'missing' }: ContainerSettings): Promise<void> {
  if (await isThere(docker, image)) return
  if (pull === 'never') throw missing(image, 'it is not to be pulled; build, load or pull it before')
  const complaint = await pullImage(docker, image)
  // Some engines end a pull that has failed as if it were well.
  if (complaint !== undefined || !(await isThere(docker, image)))
    throw missing(image, `pulling it failed: ${complaint ?? 'the engine does not say why'}`)
}

async function isThere(docker: Dockerode, image: string): Promise<boolean> {
  try {
    await docker.getImage(image).inspect()
    return true
  } catch (failure) {
    if (statusOf(failure) === 404) return false
    throw PlugstreamError.from(failure, 'ERR_CONTAINER', `looking for the image ${image}`, { retryable: true })
  }
}

/** What the engine complained of. */
async function pullImage(docker: Dockerode, image: string): Promise<string | undefined> {
  try {
    const stream = (await docker.pull(image)) as AsyncIterable<Buffer>
    let rest = ''
    let complaint: string | undefined
    for await (const chunk of stream) {
      const lines = (rest + chunk.toString('utf8')).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) complaint = complaintOf(line) ?? complaint
    }
    return complaintOf(rest) ?? complaint
  } catch (failure) {
    return wordsOf(failure)
  }
}

function complaintOf(line: string): string | undefined {
  if (line.trim() === '') return undefined
  try {
    return (JSON.parse(line) as { error?: string }).error
  } catch {
    return undefined
  }
}

function missing(image: string, why: string): PlugstreamError {
  return new PlugstreamError('ERR_CONTAINER', `the engine does not have the image ${image}: ${why}`, {
    retryable: true,
    details: { image },
  })
}
