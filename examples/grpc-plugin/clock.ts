import { Client } from '@grpc/grpc-js'

/** The one call of the service, in JSON: what a generated client would bring. */
export const clockPath = '/example.Clock/Now'
export const asJson = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
export const fromJson = (bytes: Buffer): string => JSON.parse(bytes.toString()) as string

export class ClockClient extends Client {
  now(): Promise<string> {
    return new Promise((resolve, reject) =>
      this.makeUnaryRequest(clockPath, asJson, fromJson, {}, (failure, time) =>
        failure ? reject(failure) : resolve(time ?? ''),
      ),
    )
  }
}
