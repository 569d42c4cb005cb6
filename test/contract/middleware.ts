import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'

/** Middleware that a host runs before the service. */
type Handler = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void

/** One or more middleware functions, in the order in which the host runs them. */
export interface MiddlewareChain {
  readonly name: string
  readonly handlers: readonly Handler[]
  /** The names of the header fields that the chain adds to each response with a body, and may add to others. */
  readonly addedFields: readonly RegExp[]
}

const require = createRequire(import.meta.url)

/** Loads the middleware of a package. Loads it by name, because the aliases of old versions have no types. */
export function loadMiddleware(name: string, options?: object): Handler {
  return (require(name) as (options?: object) => Handler)(options)
}

function createChain(name: string, handler: Handler, ...addedFields: readonly RegExp[]): MiddlewareChain {
  return { name, handlers: [handler], addedFields }
}

function combineChains(name: string, ...chains: readonly MiddlewareChain[]): MiddlewareChain {
  return {
    name,
    handlers: chains.flatMap(({ handlers }) => handlers),
    addedFields: chains.flatMap(({ addedFields }) => addedFields),
  }
}

/** Compress responses of at least `threshold` bytes, and end a response after the compression has finished. */
const COMPRESSIONS = ['compression', 'compression-1.7'].flatMap((name) =>
  [1024, 0].map((threshold) =>
    createChain(`${name} with threshold ${threshold}`, loadMiddleware(name, { threshold }), /^vary$/),
  ),
)

/** A different implementation, which sends the header only together with the first byte of the body. */
const POLKA_COMPRESSION = createChain('@polka/compression', loadMiddleware('@polka/compression'))

/** Save the session before the response ends. */
const SESSIONS = ['express-session', 'express-session-1.18.0'].map((name) =>
  createChain(name, loadMiddleware(name, { secret: 'secret', resave: false, saveUninitialized: true }), /^set-cookie$/),
)

function changeSession(request: object, _: unknown, next: () => void): void {
  Object.assign(request, { session: { seen: true } })
  next()
}

/** Store a changed session in a cookie. */
const COOKIE_SESSIONS = ['cookie-session', 'cookie-session-2.0'].map((name) =>
  combineChains(
    name,
    createChain(name, loadMiddleware(name, { keys: ['secret'] }), /^set-cookie$/),
    createChain('a changed session', changeSession),
  ),
)

const REQUEST_LOGGERS = ['morgan', 'morgan-1.10.0'].map((name) => {
  const log = require(name) as (format: string, options: object) => Handler
  return createChain(name, log('combined', { stream: { write: () => true } }))
})

const RESPONSE_TIMES = ['response-time', 'response-time-2.3.2'].map((name) =>
  createChain(name, loadMiddleware(name), /^x-response-time$/),
)

const HELMET = createChain(
  'helmet',
  loadMiddleware('helmet'),
  /^(?:content-security-policy|cross-origin-.*|origin-agent-cluster|referrer-policy|strict-transport-security|x-.*)$/,
)

const CORS = createChain('cors', loadMiddleware('cors', { preflightContinue: true }), /^(?:access-control-.*|vary)$/)

function callOnHeaders(_: unknown, response: ServerResponse, next: () => void): void {
  const onHeaders = require('on-headers-1') as (response: ServerResponse, listener: () => void) => void
  onHeaders(response, () => response.setHeader('X-On-Headers', '1'))
  next()
}

const ON_HEADERS_1 = createChain('on-headers 1.0', callOnHeaders, /^x-on-headers$/)

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
