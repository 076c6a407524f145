import {
  Metadata,
  status,
  Server,
  ServerCredentials,
  type sendUnaryData,
  type ServerUnaryCall,
  type ServerWritableStream,
} from '@grpc/grpc-js'
import { healthProto } from '../../../lib/grpc/proto.js'
import { serveRaw } from '../csi/plugin-server.js'

type Asked = { service: string }
type Told = { status: string | number }
type Answer = { status: string | number } | { code: status; details: string }

/** What a server does when it is asked for its health. */
export interface HealthAnswers {
  /** Absent: it has no Check. */
  check?: (service: string) => Answer | Promise<Answer>
  /** Absent: it has no Watch. Hears each stream that is opened. */
  watch?: (stream: ServerWritableStream<Asked, Told>) => void
}

/** A gRPC server with the health service as `answers` says at the time, over connections that are at hand. */
export async function serveHealth(socketPath: string, answers: HealthAnswers) {
  const grpc = new Server({ 'grpc.enable_channelz': 0 })
  const { service } = healthProto().Health
  const checked: string[] = []
  const handlers = {
    Check: (call: ServerUnaryCall<Asked, Told>, answer: sendUnaryData<Told>) => {
      checked.push(call.request.service)
      if (!answers.check) {
        answer(unimplemented)
        return
      }
      void Promise.resolve(answers.check(call.request.service)).then((told) =>
        'code' in told ? answer({ ...told, metadata: new Metadata() }) : answer(null, told),
      )
    },
    Watch: (stream: ServerWritableStream<Asked, Told>) => {
      stream.on('error', () => undefined)
      if (answers.watch) answers.watch(stream)
      else stream.emit('error', unimplemented)
    },
  }
  grpc.addService(service, handlers)
  const injector = grpc.createConnectionInjector(ServerCredentials.createInsecure())
  const raw = await serveRaw(socketPath, (socket) => injector.injectConnection(socket))
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => {
    grpc.forceShutdown()
    return raw.close()
  }
  return {
    ...raw,
    /** The names that Check was asked for, oldest first. */
    checked,
    /** Idempotent. */
    close: (): Promise<void> => (closing ??= close()),
  }
}

const unimplemented = { code: status.UNIMPLEMENTED, details: 'no such method', metadata: new Metadata() }
