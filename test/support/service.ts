import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
  type RequestOptions,
  type Server,
} from 'node:http'
import type { AddressInfo, Server as NetServer } from 'node:net'
import type { TestContext } from 'node:test'
import { createPlantStore, MAX_PAGE, type PlantStore, type PlantStoreOptions, type Store } from '../../src/index.ts'

/** A request as a test sends it. */
export interface TestRequest {
  readonly method: string
  readonly path: string
  /** [name, value, name, value…]. Only Content-Length and a missing Host are added automatically. */
  readonly fields: readonly string[]
  readonly body?: string | Uint8Array | undefined
}

/** A response as a test receives it. */
export interface TestResponse {
  readonly status: number
  /** All header fields except Date, Connection, Keep-Alive and Transfer-Encoding, keyed by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const HOP_BY_HOP = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding', ':status'])

/** Creates a service. By default, every token is valid and identifies an owner of the same name. */
export function createService(options: Partial<PlantStoreOptions> = {}): PlantStore {
  const access = 'tokens' in options || 'authenticate' in options ? {} : { authenticate: (token: string) => token }
  return createPlantStore({ ...access, ...options } as PlantStoreOptions)
}

/** Starts a server on a free port, or a new one for a listener. It is closed after the test. */
export async function serve(t: TestContext, listener: Server | RequestListener): Promise<Server> {
  const server = typeof listener === 'function' ? createServer(listener) : listener
  await listen(server)
  t.after(() => close(server))
  return server
}

/** Starts a server for {@link createService}. It is closed after the test. */
export function servePlants(t: TestContext, options: Partial<PlantStoreOptions> = {}): Promise<Server> {
  return serve(t, createService(options))
}

export function listen(server: NetServer): Promise<void> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
}

/** Closes a server, and an HTTP/1 server's connections. */
export function close(server: NetServer & Partial<Pick<Server, 'closeAllConnections'>>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections?.()
  })
}

export function getPort(server: NetServer): number {
  return (server.address() as AddressInfo).port
}

/** Sends a request on a new connection and reads the complete response. */
export function sendRequest(server: Server, request: TestRequest): Promise<TestResponse> {
  return sendToPort(getPort(server), request)
}

/** Like {@link sendRequest}, but with the port of the server. */
export async function sendToPort(port: number, request: TestRequest): Promise<TestResponse> {
  const response = await openResponseFrom(port, request)
  const body = Buffer.concat((await response.toArray()) as Buffer[]).toString()
  return toTestResponse(response.statusCode!, response.headers, body)
}

export function toTestResponse(status: number, fields: object, body: string): TestResponse {
  const entries = Object.entries(fields).filter(([name]) => !HOP_BY_HOP.has(name))
  return { status, headers: Object.fromEntries(entries.map(([name, value]) => [name, String(value)])), body }
}

/** Sends a request on a new connection. The caller reads the body of the response. */
export function openResponse(server: Server, request: TestRequest): Promise<IncomingMessage> {
  return openResponseFrom(getPort(server), request)
}

function openResponseFrom(port: number, request: TestRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    httpRequest({ ...toRequestOptions(port, request), agent: false })
      .on('response', resolve)
      .on('error', reject)
      .end(request.body)
  })
}

/** Converts a request to options for `http.request()`, with Content-Length and, if it's missing, Host. */
export function toRequestOptions(port: number, { method, path, fields, body }: TestRequest): RequestOptions {
  const hasHost = fields.some((name, i) => i % 2 === 0 && name.toLowerCase() === 'host')
  const host = hasHost ? [] : ['Host', `127.0.0.1:${port}`]
  const length = body === undefined ? [] : ['Content-Length', String(Buffer.byteLength(body))]
  return { host: '127.0.0.1', port, method, path, headers: [...host, ...fields, ...length] }
}

/** Creates a POST request for a plant. */
export function post(token: string, body: string | Uint8Array, fields: readonly string[] = []): TestRequest {
  return {
    method: 'POST',
    path: '/plants',
    fields: [...bearer(token), 'Content-Type', 'application/json', ...fields],
    body,
  }
}

export function get(token: string, path = '/plants'): TestRequest {
  return { method: 'GET', path, fields: bearer(token) }
}

export function del(token: string, id: string | bigint): TestRequest {
  return { method: 'DELETE', path: `/plants/${id}`, fields: bearer(token) }
}

export function bearer(token: string): readonly string[] {
  return ['Authorization', `Bearer ${token}`]
}

/** Returns the ids of the owner ada's plants in a store, up to one page of them. */
export async function listStoredIds(store: Store): Promise<bigint[]> {
  return (await store.list('ada', { limit: MAX_PAGE, maxBytes: Infinity })).plants.map(({ id }) => id)
}
