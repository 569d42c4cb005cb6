import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'

/** Middleware that a host runs before the service. */
type Handler = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void

/** One or more middleware functions, in the order in which the host runs them. */
export interface MiddlewareChain {
  readonly name: string
  readonly load: () => readonly Handler[]
  /** The names of the header fields that the chain adds to each response with a body, and may add to others. */
  readonly addedFields: readonly RegExp[]
}

const require = createRequire(import.meta.url)

/** Loads the middleware of a package. */
export function loadMiddleware(name: string, ...args: unknown[]): Handler {
  return (require(name) as (...args: unknown[]) => Handler)(...args)
}

/** Creates a chain of handwritten middleware. */
function createChain(name: string, handler: Handler, ...addedFields: readonly RegExp[]): MiddlewareChain {
  return { name, load: () => [handler], addedFields }
}

/** Creates a chain with the middleware of a package. */
function createPackageChain(name: string, args: unknown[], ...addedFields: readonly RegExp[]): MiddlewareChain {
  return { name, load: () => [loadMiddleware(name, ...args)], addedFields }
}

function combineChains(name: string, ...chains: readonly MiddlewareChain[]): MiddlewareChain {
  return {
    name,
    load: () => chains.flatMap(({ load }) => load()),
    addedFields: chains.flatMap(({ addedFields }) => addedFields),
  }
}

/** Compress responses of at least `threshold` bytes, and end a response after the compression has finished. */
const COMPRESSIONS = [1024, 0].map((threshold) => ({
  ...createPackageChain('compression', [{ threshold }], /^vary$/),
  name: `compression with threshold ${threshold}`,
}))

/** Saves the session before the response ends. */
const SESSION = createPackageChain(
  'express-session',
  [{ secret: 'secret', resave: false, saveUninitialized: true }],
  /^set-cookie$/,
)

function changeSession(request: object, _: unknown, next: () => void): void {
  Object.assign(request, { session: { seen: true } })
  next()
}

/** Stores a changed session in a cookie. */
const COOKIE_SESSION = combineChains(
  'cookie-session',
  createPackageChain('cookie-session', [{ keys: ['secret'] }], /^set-cookie$/),
  createChain('a changed session', changeSession),
)

const REQUEST_LOGGER = createPackageChain('morgan', ['combined', { stream: { write: () => true } }])

const RESPONSE_TIME = createPackageChain('response-time', [], /^x-response-time$/)

const HELMET = createPackageChain(
  'helmet',
  [],
  /^(?:content-security-policy|cross-origin-.*|origin-agent-cluster|referrer-policy|strict-transport-security|x-.*)$/,
)

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
  ...[...COMPRESSIONS, SESSION, COOKIE_SESSION, REQUEST_LOGGER, RESPONSE_TIME, HELMET],
  createChain('a wrapper of write and end', tapResponse),
  createChain('a wrapper of writeHead', addFieldInWriteHead, /^x-fields$/),
  // express-session and cookie-session are alternatives, so each chain contains only one of them.
  combineChains('all of them', REQUEST_LOGGER, RESPONSE_TIME, HELMET, COMPRESSIONS[0]!, SESSION),
  combineChains(
    'all of them, with cookie-session',
    COMPRESSIONS[1]!,
    REQUEST_LOGGER,
    RESPONSE_TIME,
    HELMET,
    COOKIE_SESSION,
  ),
]
