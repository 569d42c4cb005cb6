import { Agent as HttpAgent, request as httpRequest } from 'node:http'
import { connect, type ClientHttp2Session } from 'node:http2'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { Answer, Request } from '../service.ts'
import { TLS, type Host } from './hosts.ts'

/** Sends requests to a server, and reads whole answers. */
export interface Client {
  send(request: Request): Promise<Answer>
  close(): void
}

export function connectTo({ protocol }: Pick<Host, 'protocol'>, port: number): Client {
  if (protocol === 'http' || protocol === 'https') {
    const agent = new (protocol === 'https' ? HttpsAgent : HttpAgent)({ keepAlive: true, maxSockets: 1 })
    return { send: (request) => sendHttp1(protocol, port, agent, request), close: () => agent.destroy() }
  }
  const scheme = protocol === 'h2' ? 'https' : 'http'
  const session = connect(`${scheme}://127.0.0.1:${port}`, { ca: TLS.cert })
  return { send: (request) => sendHttp2(session, request), close: () => session.close() }
}

const HOP_BY_HOP = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding', ':status'])

async function sendHttp1(
  protocol: 'http' | 'https',
  port: number,
  agent: HttpAgent,
  { method, path, fields, body }: Request,
): Promise<Answer> {
  const request = protocol === 'https' ? httpsRequest : httpRequest
  const host = fields.includes('Host') ? [] : ['Host', `127.0.0.1:${port}`]
  const length = body === undefined ? [] : ['Content-Length', String(Buffer.byteLength(body))]
  const headers = [...host, ...fields, ...length]
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port, method, path, headers, agent, ca: TLS.cert }, (response) => {
      const chunks: Buffer[] = []
      response
        .on('data', (chunk: Buffer) => chunks.push(chunk))
        .on('end', () => resolve(answer(response.statusCode!, response.headers, chunks)))
        .on('error', reject)
    })
      .on('error', reject)
      .end(body)
  })
}

async function sendHttp2(session: ClientHttp2Session, { method, path, fields, body }: Request): Promise<Answer> {
  const headers: Record<string, string> = {}
  for (let i = 0; i < fields.length; i += 2) headers[fields[i]!] = fields[i + 1]!
  return new Promise((resolve, reject) => {
    const stream = session.request({ ...headers, ':method': method, ':path': path }, { endStream: body === undefined })
    stream.on('response', (received) => {
      const chunks: Buffer[] = []
      stream
        .on('data', (chunk: Buffer) => chunks.push(chunk))
        .on('end', () => resolve(answer(received[':status']!, received, chunks)))
    })
    stream.on('error', reject)
    if (body !== undefined) stream.end(body)
  })
}

function answer(status: number, received: Readonly<Record<string, unknown>>, chunks: readonly Buffer[]): Answer {
  const headers: Record<string, string> = {}
  for (const [name, value] of Object.entries(received)) {
    if (!HOP_BY_HOP.has(name)) headers[name] = String(value)
  }
  const { connection } = received as { connection?: string }
  return { status, headers, connection, body: Buffer.concat(chunks).toString() }
}
