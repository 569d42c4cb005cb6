import { Agent as HttpAgent, createServer, request as httpRequest } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect, createServer as createHttp2Server } from 'node:http2'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { Readable, type Writable } from 'node:stream'
import type { TestContext } from 'node:test'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { TLS } from './certificate.ts'
import {
  close,
  listen,
  getPort,
  toTestResponse,
  toRequestOptions,
  type TestResponse,
  type TestRequest,
} from './service.ts'

/** HTTP/1.1 or HTTP/2, each in plain text or over TLS. */
export type Protocol = 'http' | 'https' | 'h2c' | 'h2'

/** A client with a single connection. */
export interface Client {
  /** Sends the head of a request. Returns a stream that accepts the body and emits `response`. */
  open(request: TestRequest): Writable
  /** Sends a request and reads the complete response, which may be compressed. */
  send(request: TestRequest): Promise<TestResponse>
  close(): void
}

export function connectClient(protocol: Protocol, port: number): Client {
  const isHttp1 = protocol === 'http' || protocol === 'https'
  const client = isHttp1 ? connectHttp1(protocol, port) : connectHttp2(protocol, port)
  return { ...client, send: (request) => send(client, request) }
}

/** Starts a server with a listener and connects a client. Both are closed after the test. */
export async function serveAndConnect(
  t: TestContext,
  protocol: 'http' | 'h2c',
  listener: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<Client> {
  const createServerOf = (protocol === 'http' ? createServer : createHttp2Server) as typeof createServer
  const server = createServerOf(listener)
  await listen(server)
  const client = connectClient(protocol, getPort(server))
  t.after(() => {
    client.close()
    return close(server)
  })
  return client
}

function connectHttp1(protocol: 'http' | 'https', port: number): Omit<Client, 'send'> {
  const [request, Agent] = protocol === 'https' ? [httpsRequest, HttpsAgent] : [httpRequest, HttpAgent]
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return {
    open: (options) => request({ ...toRequestOptions(port, options), agent, ca: TLS.cert }),
    close: () => agent.destroy(),
  }
}

function connectHttp2(protocol: 'h2c' | 'h2', port: number): Omit<Client, 'send'> {
  const scheme = protocol === 'h2' ? 'https' : 'http'
  const session = connect(`${scheme}://127.0.0.1:${port}`, { ca: TLS.cert })
  // A server that closes with unread input resets its connections. Each request emits this error, too.
  session.on('error', () => undefined)
  return {
    open({ method, path, fields, body }) {
      const headers: Record<string, string> = { ':method': method, ':path': path }
      for (let i = 0; i < fields.length; i += 2) headers[fields[i]!] = fields[i + 1]!
      if (body !== undefined) headers['content-length'] = String(Buffer.byteLength(body))
      // The test may still write the body of a POST.
      return session.request(headers, { endStream: body === undefined && method !== 'POST' })
    },
    close: () => session.destroy(),
  }
}

function send(client: Pick<Client, 'open'>, request: TestRequest): Promise<TestResponse> {
  return new Promise((resolve, reject) => {
    const clientRequest = client.open(request)
    const rejectWithoutResponse = (): void => reject(new Error('The connection or stream closed before the response.'))
    clientRequest.on('error', reject).on('close', rejectWithoutResponse)
    clientRequest.on('response', (received: IncomingMessage | Record<string, unknown>) => {
      clientRequest.off('close', rejectWithoutResponse)
      // In HTTP/2, the request stream is also the response stream.
      const isHttp1 = received instanceof Readable
      const [stream, fields] = isHttp1 ? [received, received.headers] : [clientRequest, received]
      const status = Number(isHttp1 ? received.statusCode : received[':status'])
      const chunks: Buffer[] = []
      stream
        .on('data', (chunk: Buffer) => chunks.push(chunk))
        .on('end', () => {
          try {
            resolve(toTestResponse(status, fields, decodeBody(fields['content-encoding'], Buffer.concat(chunks))))
          } catch (cause) {
            reject(new Error('The body cannot be decompressed.', { cause }))
          }
        })
        .on('error', reject)
    })
    if (!clientRequest.writableEnded) clientRequest.end(request.body)
  })
}

/**
 * Decompresses a body.
 * @throws Error if it is truncated
 */
export function decodeBody(coding: unknown, body: Buffer): string {
  if (coding === 'gzip') return gunzipSync(body).toString()
  if (coding === 'br') return brotliDecompressSync(body).toString()
  return body.toString()
}
