import { text } from 'node:stream/consumers'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TestContext } from 'node:test'
import { createPlantClient, type PlantClient, type PlantClientOptions } from '../../src/client/plant-client.ts'
import { memoryStore, type Store } from '../../src/index.ts'
import { bearer, getPort, sendToPort, serve, servePlants, type TestResponse } from './service.ts'

/** How the proxy handles a request. `forward` sends it to the service and reads the complete response. */
export type Fault = (
  request: IncomingMessage,
  response: ServerResponse,
  forward: () => Promise<TestResponse>,
) => unknown

/** A service behind a proxy that injects faults. */
export interface FaultyProxy {
  readonly url: string
  /** The requests so far, each as method, path and token. */
  readonly requests: string[]
  /** Creates a client that connects to the proxy with ada's token. */
  connect(options?: Partial<PlantClientOptions>): PlantClient
}

/** Starts a proxy that applies the given faults to the first requests, one each. Undefined means no fault. */
export async function startFaultyProxy(
  t: TestContext,
  faults: readonly (Fault | undefined)[] = [],
  store: Store = memoryStore(),
): Promise<FaultyProxy> {
  const port = getPort(await servePlants(t, { store, onError: () => undefined }))
  const remaining = [...faults]
  const requests: string[] = []
  const proxy = await serve(t, (request, response) => void handle(request, response))

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: path = '', headers } = request
    const token = headers.authorization?.slice('Bearer '.length)
    requests.push(`${method} ${path} ${token}`)
    const body = method === 'POST' ? await text(request) : undefined
    const type = body === undefined ? [] : ['Content-Type', 'application/json']
    const forward = (): Promise<TestResponse> =>
      sendToPort(port, { method, path, fields: [...bearer(token ?? ''), ...type], body })
    await (remaining.shift() ?? passOn)(request, response, forward)
  }

  const url = `http://127.0.0.1:${getPort(proxy)}`
  return { url, requests, connect: (options) => createPlantClient({ url, token: 'ada', ...options }) }
}

const passOn: Fault = async (request, response, forward) => {
  const { status, headers, body } = await forward()
  response.writeHead(status, headers).end(body)
}

/** Responds without forwarding the request to the service. */
export function respond(status: number, body: string | object = '<html>', headers: Record<string, string> = {}): Fault {
  return (request, response) =>
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body))
}

/** Replaces the service's response after the service has handled the request. */
export function replaceResponse(...args: Parameters<typeof respond>): Fault {
  return async (request, response, forward) => {
    await forward()
    respond(...args)(request, response, forward)
  }
}

/** Changes the body of the service's response. */
export function replaceBody(replace: (body: string) => string): Fault {
  return async (request, response, forward) => {
    const { status, headers, body } = await forward()
    const changed = replace(body)
    response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(changed) }).end(changed)
  }
}

/** Closes the connection before the service gets the request. */
export const cutBefore: Fault = (request) => request.socket.destroy()

/** Closes the connection after the service has handled the request. */
export const cutAfter: Fault = async (request, response, forward) => {
  await forward()
  request.socket.destroy()
}

/** Closes the connection in the middle of the response. */
export const cutWithin: Fault = async (request, response, forward) => {
  const { status, headers, body } = await forward()
  const half =
    status === 204
      ? 'HTTP/1.1 204 No'
      : `HTTP/1.1 ${status} OK\r\n${formatFields(headers)}\r\n\r\n${body.slice(0, body.length / 2)}`
  request.socket.end(half)
}

/** Closes the connection in the middle of a chunked response. */
export const cutWithinChunks: Fault = async (request, response, forward) => {
  const { status, headers, body } = await forward()
  const fields = Object.entries(headers).filter(([name]) => name !== 'content-length')
  response.writeHead(status, Object.fromEntries(fields))
  response.write(body.slice(0, body.length / 2), () => request.socket.destroy())
}

/** Forwards the request to the service twice, and sends the second response to the client. */
export const repeat: Fault = async (request, response, forward) => {
  await forward()
  await passOn(request, response, forward)
}

/** Never responds, and doesn't forward the request to the service. */
export const hang: Fault = () => undefined

/** Never responds, although the service has handled the request. */
export const hangAfter: Fault = (request, response, forward) => forward()

function formatFields(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\r\n')
}
