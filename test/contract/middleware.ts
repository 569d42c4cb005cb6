import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'

/** What a host puts before a service. */
type Handler = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void

/** One middleware, or several in the order in which a host uses them. */
export interface Chain {
  readonly name: string
  readonly handlers: readonly Handler[]
  /** The names of the header fields that it adds to each response with a body, and may add to others. */
  readonly adds: readonly RegExp[]
}

const require = createRequire(import.meta.url)

/** Makes a middleware of a package by its name, as an alias for an old version has no types. */
export function load(name: string, options?: object): Handler {
  return (require(name) as (options?: object) => Handler)(options)
}

function one(name: string, handler: Handler, ...adds: readonly RegExp[]): Chain {
  return { name, handlers: [handler], adds }
}

function chain(name: string, ...links: readonly Chain[]): Chain {
  return { name, handlers: links.flatMap(({ handlers }) => handlers), adds: links.flatMap(({ adds }) => adds) }
}

/** Compresses from so many bytes on, and ends the response once that is done. */
const COMPRESSIONS = ['compression', 'compression-1.7'].flatMap((name) =>
  [1024, 0].map((threshold) => one(`${name} from ${threshold} bytes on`, load(name, { threshold }), /^vary$/)),
)

/** The same by others. Sends the head only with the first byte of the body. */
const POLKA_COMPRESSION = one('@polka/compression', load('@polka/compression'))

/** Saves each session before the response ends. */
const SESSIONS = ['express-session', 'express-session-1.18.0'].map((name) =>
  one(name, load(name, { secret: 'secret', resave: false, saveUninitialized: true }), /^set-cookie$/),
)

function change(request: object, _: unknown, next: () => void): void {
  Object.assign(request, { session: { seen: true } })
  next()
}

/** Makes a cookie of a session that has changed. */
const COOKIE_SESSIONS = ['cookie-session', 'cookie-session-2.0'].map((name) =>
  chain(name, one(name, load(name, { keys: ['secret'] }), /^set-cookie$/), one('a change', change)),
)

const LOGS = ['morgan', 'morgan-1.10.0'].map((name) => {
  const log = require(name) as (format: string, options: object) => Handler
  return one(name, log('combined', { stream: { write: () => true } }))
})

const TIMES = ['response-time', 'response-time-2.3.2'].map((name) => one(name, load(name), /^x-response-time$/))

const HELMET = one(
  'helmet',
  load('helmet'),
  /^(?:content-security-policy|cross-origin-.*|origin-agent-cluster|referrer-policy|strict-transport-security|x-.*)$/,
)

const CORS = one('cors', load('cors', { preflightContinue: true }), /^(?:access-control-.*|vary)$/)

function callOnHeaders(_: unknown, response: ServerResponse, next: () => void): void {
  const onHeaders = require('on-headers-1') as (response: ServerResponse, listener: () => void) => void
  onHeaders(response, () => response.setHeader('X-On-Headers', '1'))
  next()
}

const ON_HEADERS_1 = one('on-headers 1.0', callOnHeaders, /^x-on-headers$/)

/** What hosts write themselves: it takes chunks for text, drops the encoding, and forgets to return anything. */
function tap(_: unknown, response: ServerResponse, next: () => void): void {
  const write = response.write.bind(response) as (text: string) => boolean
  const end = response.end.bind(response) as (text?: string) => ServerResponse
  Object.assign(response, {
    write: (chunk: Buffer | string) => void write(String(chunk)),
    end: (chunk?: Buffer | string) => void end(chunk && String(chunk)),
  })
  next()
}

/** The same of `writeHead`: it looks at the response, and not at what else it is given. */
function addLate(_: unknown, response: ServerResponse, next: () => void): void {
  const writeHead = response.writeHead.bind<(status: number) => ServerResponse>(response)
  response.writeHead = (status: number) => {
    response.setHeader('X-Fields', response.getHeaderNames().join())
    return writeHead(status)
  }
  next()
}

/** Each middleware alone, and all of them as a host may have them. */
export const CHAINS: readonly Chain[] = [
  ...[...COMPRESSIONS, ...SESSIONS, ...COOKIE_SESSIONS, ...LOGS, ...TIMES],
  ...[HELMET, CORS, ON_HEADERS_1, POLKA_COMPRESSION],
  ...[one('a tap on what is written', tap), one('a late field', addLate, /^x-fields$/)],
  // A request has one session: it is kept by the one or by the other.
  chain('all, as of today', LOGS[0]!, TIMES[0]!, HELMET, CORS, COMPRESSIONS[0]!, SESSIONS[0]!),
  chain('all, the session in a cookie', COMPRESSIONS[1]!, LOGS[0]!, TIMES[0]!, HELMET, CORS, COOKIE_SESSIONS[0]!),
  chain('all, in old versions', LOGS[1]!, TIMES[1]!, HELMET, CORS, COMPRESSIONS[2]!, SESSIONS[1]!, ON_HEADERS_1),
  chain('all, old, in another order', ON_HEADERS_1, SESSIONS[1]!, COMPRESSIONS[3]!, TIMES[1]!, LOGS[1]!, HELMET, CORS),
]
