import type { IncomingMessage, ServerResponse } from 'node:http'
import { importPeer, skipWithoutPeers } from '../support/extra-packages.ts'

/** Middleware that a host runs before the service. */
type Handler = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void

/** A handwritten function, or the name of a package that exports a function, and its arguments. */
type Middleware = Handler | readonly [name: string, ...args: unknown[]]

/** Middleware in the order in which the host runs it. */
export interface MiddlewareChain {
  readonly name: string
  readonly middleware: readonly Middleware[]
  /** The names of the header fields that the chain adds to each response with a body, and may add to others. */
  readonly addedFields: readonly RegExp[]
}

/** Loads the middleware of a package. */
export async function loadMiddleware(name: string, ...args: unknown[]): Promise<Handler> {
  return (await importPeer<{ default: (...args: unknown[]) => Handler }>(name)).default(...args)
}

export async function loadChain({ middleware }: MiddlewareChain): Promise<readonly Handler[]> {
  return Promise.all(middleware.map(async (item) => (typeof item === 'function' ? item : loadMiddleware(...item))))
}

/** Returns the skip reason for tests that need a chain, or false to run them. */
export function getSkipReason({ middleware }: MiddlewareChain): string | false {
  return !middleware.every((item) => typeof item === 'function') && skipWithoutPeers
}

function createChain(name: string, middleware: Middleware, ...addedFields: readonly RegExp[]): MiddlewareChain {
  return { name, middleware: [middleware], addedFields }
}

function combineChains(name: string, ...chains: readonly MiddlewareChain[]): MiddlewareChain {
  return {
    name,
    middleware: chains.flatMap(({ middleware }) => middleware),
    addedFields: chains.flatMap(({ addedFields }) => addedFields),
  }
}

/** Compress responses of at least `threshold` bytes, and end a response after the compression has finished. */
const COMPRESSIONS = [1024, 0].map((threshold) =>
  createChain(`compression with threshold ${threshold}`, ['compression', { threshold }], /^vary$/),
)

/** Saves the session before the response ends. */
const SESSION = createChain(
  'express-session',
  ['express-session', { secret: 'secret', resave: false, saveUninitialized: true }],
  /^set-cookie$/,
)

function changeSession(request: object, _: unknown, next: () => void): void {
  Object.assign(request, { session: { seen: true } })
  next()
}

/** Stores a changed session in a cookie. */
const COOKIE_SESSION = combineChains(
  'cookie-session',
  createChain('cookie-session', ['cookie-session', { keys: ['secret'] }], /^set-cookie$/),
  createChain('a changed session', changeSession),
)

const REQUEST_LOGGER = createChain('morgan', ['morgan', 'combined', { stream: { write: () => true } }])

const RESPONSE_TIME = createChain('response-time', ['response-time'], /^x-response-time$/)

const HELMET = createChain(
  'helmet',
  ['helmet'],
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

const COMMON = [REQUEST_LOGGER, RESPONSE_TIME, HELMET]

/** Each middleware alone, and typical combinations of them. */
export const CHAINS: readonly MiddlewareChain[] = [
  ...[...COMPRESSIONS, SESSION, COOKIE_SESSION, ...COMMON],
  createChain('a wrapper of write and end', tapResponse),
  createChain('a wrapper of writeHead', addFieldInWriteHead, /^x-fields$/),
  // express-session and cookie-session are alternatives, so each chain contains only one of them.
  combineChains('all of them', ...COMMON, COMPRESSIONS[0]!, SESSION),
  combineChains('all of them, with cookie-session', COMPRESSIONS[1]!, ...COMMON, COOKIE_SESSION),
]
