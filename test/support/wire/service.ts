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
import { createPlantStore, MAX_PAGE, type PlantStore, type PlantStoreOptions, type Store } from '../../../src/index.ts'

/** A request as a test sends it. */
export interface TestRequest {
  readonly method: string
  readonly path: string
  /** Name, value, name, value… A test decides on each field itself, but for Host and the length of the body. */
  readonly fields: readonly string[]
  readonly body?: string | Uint8Array | undefined
}

/** An answer as a test receives it. */
export interface TestResponse {
  readonly status: number
  /** Every field but Date, Connection, Keep-Alive and Transfer-Encoding, whose names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const HOP_BY_HOP = new Set(['date', 'connection', 'keep-alive', 'transfer-encoding', ':status'])

/** Makes a service in which each token is an owner of its own, unless the options say otherwise. */
export function createService(options: Partial<PlantStoreOptions> = {}): PlantStore {
  const access = 'tokens' in options || 'authenticate' in options ? {} : { authenticate: (token: string) => token }
  return createPlantStore({ ...access, ...options } as PlantStoreOptions)
}

/** Starts a server, or one for a listener, on a free port; it ends with the test. */
export async function serve(t: TestContext, listener: Server | RequestListener): Promise<Server> {
  const server = typeof listener === 'function' ? createServer(listener) : listener
  await listen(server)
  t.after(() => close(server))
  return server
}

/** Starts what {@link createService} makes; it ends with the test. */
export function servePlants(t: TestContext, options: Partial<PlantStoreOptions> = {}): Promise<Server> {
  return serve(t, createService(options))
}

export function listen(server: NetServer): Promise<void> {
  return new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
}

/** Closes a server of Node core; one of HTTP/1 with all its connections. */
export function close(server: NetServer & Partial<Pick<Server, 'closeAllConnections'>>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections?.()
  })
}

export function getPort(server: NetServer): number {
  return (server.address() as AddressInfo).port
}

/** Sends a request on a connection of its own and reads the whole answer. */
export function sendRequest(server: Server, request: TestRequest): Promise<TestResponse> {
  return sendToPort(getPort(server), request)
}

/** As {@link sendRequest}, to whatever listens on a port. */
export async function sendToPort(port: number, request: TestRequest): Promise<TestResponse> {
  const response = await openResponseFrom(port, request)
  const body = Buffer.concat((await response.toArray()) as Buffer[]).toString()
  return toTestResponse(response.statusCode!, response.headers, body)
}

export function toTestResponse(status: number, fields: object, body: string): TestResponse {
  const entries = Object.entries(fields).filter(([name]) => !HOP_BY_HOP.has(name))
  return { status, headers: Object.fromEntries(entries.map(([name, value]) => [name, String(value)])), body }
}

/** Sends a request on a connection of its own; the answer's body is not read yet. */
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

/** What Node needs to send a request in HTTP/1, with Host and the length of its body. */
export function toRequestOptions(port: number, { method, path, fields, body }: TestRequest): RequestOptions {
  const hasHost = fields.some((name, i) => i % 2 === 0 && name.toLowerCase() === 'host')
  const host = hasHost ? [] : ['Host', `127.0.0.1:${port}`]
  const length = body === undefined ? [] : ['Content-Length', String(Buffer.byteLength(body))]
  return { host: '127.0.0.1', port, method, path, headers: [...host, ...fields, ...length] }
}

/** A POST of a plant by the owner of a token. */
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

/** The ids of the plants that a store has of the owner ada, up to a page of them. */
export async function listStoredIds(store: Store): Promise<bigint[]> {
  return (await store.list('ada', { limit: MAX_PAGE, maxBytes: Infinity })).plants.map(({ id }) => id)
}
