import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { PEERS, requirePeer, skipWithoutPeers } from '../support/package/extra-packages.ts'

/** Middleware that a host runs before the service. */
type Handler = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void

/** One or more middleware functions, in the order in which the host runs them. */
export interface MiddlewareChain {
  readonly name: string
  /** The skip reason if the chain needs a package that isn't installed, or false. */
  readonly skip: string | false
  readonly load: () => readonly Handler[]
  /** The names of the header fields that the chain adds to each response with a body, and may add to others. */
  readonly addedFields: readonly RegExp[]
}

const require = createRequire(import.meta.url)

/** Loads a package by name, because old versions, which are installed in `test/peers`, have no types. */
function loadPackage(name: string): unknown {
  return PEERS.includes(name) ? requirePeer(name) : require(name)
}

/** Loads the middleware of a package. */
export function loadMiddleware(name: string, ...args: unknown[]): Handler {
  return (loadPackage(name) as (...args: unknown[]) => Handler)(...args)
}

/** Returns the skip reason for tests with the middleware of a package, or false to run them. */
export function skipWithoutMiddleware(name: string): string | false {
  return PEERS.includes(name) && skipWithoutPeers
}

/** Creates a chain of handwritten middleware. */
function createChain(name: string, handler: Handler, ...addedFields: readonly RegExp[]): MiddlewareChain {
  return { name, skip: false, load: () => [handler], addedFields }
}

/** Creates a chain with the middleware of a package. */
function createPackageChain(name: string, args: unknown[], ...addedFields: readonly RegExp[]): MiddlewareChain {
  return { name, skip: skipWithoutMiddleware(name), load: () => [loadMiddleware(name, ...args)], addedFields }
}

function combineChains(name: string, ...chains: readonly MiddlewareChain[]): MiddlewareChain {
  return {
    name,
    skip: chains.map(({ skip }) => skip).find(Boolean) ?? false,
    load: () => chains.flatMap(({ load }) => load()),
    addedFields: chains.flatMap(({ addedFields }) => addedFields),
  }
}

/** Compress responses of at least `threshold` bytes, and end a response after the compression has finished. */
const COMPRESSIONS = ['compression', 'compression-1.7'].flatMap((name) =>
  [1024, 0].map((threshold) => ({
    ...createPackageChain(name, [{ threshold }], /^vary$/),
    name: `${name} with threshold ${threshold}`,
  })),
)

/** A different implementation, which sends the header only together with the first byte of the body. */
const POLKA_COMPRESSION = createPackageChain('@polka/compression', [])

/** Save the session before the response ends. */
const SESSIONS = ['express-session', 'express-session-1.18.0'].map((name) =>
  createPackageChain(name, [{ secret: 'secret', resave: false, saveUninitialized: true }], /^set-cookie$/),
)

function changeSession(request: object, _: unknown, next: () => void): void {
  Object.assign(request, { session: { seen: true } })
  next()
}

/** Store a changed session in a cookie. */
const COOKIE_SESSIONS = ['cookie-session', 'cookie-session-2.0'].map((name) =>
  combineChains(
    name,
    createPackageChain(name, [{ keys: ['secret'] }], /^set-cookie$/),
    createChain('a changed session', changeSession),
  ),
)

const REQUEST_LOGGERS = ['morgan', 'morgan-1.10.0'].map((name) =>
  createPackageChain(name, ['combined', { stream: { write: () => true } }]),
)

const RESPONSE_TIMES = ['response-time', 'response-time-2.3.2'].map((name) =>
  createPackageChain(name, [], /^x-response-time$/),
)

const HELMET = createPackageChain(
  'helmet',
  [],
  /^(?:content-security-policy|cross-origin-.*|origin-agent-cluster|referrer-policy|strict-transport-security|x-.*)$/,
)

const CORS = createPackageChain('cors', [{ preflightContinue: true }], /^(?:access-control-.*|vary)$/)

function callOnHeaders(_: unknown, response: ServerResponse, next: () => void): void {
  const onHeaders = loadPackage('on-headers-1') as (response: ServerResponse, listener: () => void) => void
  onHeaders(response, () => response.setHeader('X-On-Headers', '1'))
  next()
}

const ON_HEADERS_1: MiddlewareChain = {
  ...createChain('on-headers 1.0', callOnHeaders, /^x-on-headers$/),
  skip: skipWithoutMiddleware('on-headers-1'),
}

/** A typical handwritten middleware: it converts chunks to text, drops the encoding, and returns nothing. */
function tapResponse(_: unknown, response: ServerResponse, next: () => void): void {
  const write = response.write.bind(response) as (text: string) => boolean
  const end = response.end.bind(response) as (text?: string) => ServerResponse
  Object.assign(response, {
    write: (chunk: Buffer | string) => void write(String(chunk)),
    end: (chunk?: Buffer | string) => void end(chunk && String(chunk)),
  })
  next()
}

/** A handwritten `writeHead` that only uses the headers set on the response, and ignores its other arguments. */
function addFieldInWriteHead(_: unknown, response: ServerResponse, next: () => void): void {
  const writeHead = response.writeHead.bind<(status: number) => ServerResponse>(response)
  response.writeHead = (status: number) => {
    response.setHeader('X-Fields', response.getHeaderNames().join())
    return writeHead(status)
  }
  next()
}

/** Each middleware alone, and typical combinations of them. */
export const CHAINS: readonly MiddlewareChain[] = [
  ...[...COMPRESSIONS, ...SESSIONS, ...COOKIE_SESSIONS, ...REQUEST_LOGGERS, ...RESPONSE_TIMES],
  ...[HELMET, CORS, ON_HEADERS_1, POLKA_COMPRESSION],
  ...[
    createChain('a wrapper of write and end', tapResponse),
    createChain('a wrapper of writeHead', addFieldInWriteHead, /^x-fields$/),
  ],
  // express-session and cookie-session are alternatives, so each chain contains only one of them.
  combineChains(
    'all current versions',
    REQUEST_LOGGERS[0]!,
    RESPONSE_TIMES[0]!,
    HELMET,
    CORS,
    COMPRESSIONS[0]!,
    SESSIONS[0]!,
  ),
  combineChains(
    'all current versions, with cookie-session',
    COMPRESSIONS[1]!,
    REQUEST_LOGGERS[0]!,
    RESPONSE_TIMES[0]!,
    HELMET,
    CORS,
    COOKIE_SESSIONS[0]!,
  ),
  combineChains(
    'all old versions',
    REQUEST_LOGGERS[1]!,
    RESPONSE_TIMES[1]!,
    HELMET,
    CORS,
    COMPRESSIONS[2]!,
    SESSIONS[1]!,
    ON_HEADERS_1,
  ),
  combineChains(
    'all old versions in another order',
    ON_HEADERS_1,
    SESSIONS[1]!,
    COMPRESSIONS[3]!,
    RESPONSE_TIMES[1]!,
    REQUEST_LOGGERS[1]!,
    HELMET,
    CORS,
  ),
]
