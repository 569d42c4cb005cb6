import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'

/** What a host puts before a service. */
export type Handler = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void

/** A middleware as it stands in a chain. */
interface Middleware {
  readonly name: string
  readonly handlers: readonly Handler[]
  /** The names of the header fields that it adds to each response with a body, and may add to others. */
  readonly adds?: RegExp
}

/** Middleware in the order in which a host uses it. */
export interface Chain {
  readonly name: string
  readonly handlers: readonly Handler[]
  readonly adds: readonly RegExp[]
}

type Factory = (options?: object) => Handler

const require = createRequire(import.meta.url)

/** Makes a middleware of a package by its name, as an alias for an old version has no types. */
export function load(name: string, options?: object): Handler {
  return (require(name) as Factory)(options)
}

const COOKIE = /^set-cookie$/

/** Compresses from so many bytes on, and ends the response once that is done. */
function compression(name: string, threshold: number): Middleware {
  return { name: `${name} from ${threshold} bytes on`, handlers: [load(name, { threshold })], adds: /^vary$/ }
}

/** The same by others. Sends the head only with the first byte of the body. */
const POLKA_COMPRESSION: Middleware = { name: '@polka/compression', handlers: [load('@polka/compression')] }

/** Saves each session before the response ends. */
function expressSession(name: string): Middleware {
  const options = { secret: 'secret', resave: false, saveUninitialized: true }
  return { name, handlers: [load(name, options)], adds: COOKIE }
}

/** Makes a cookie of a session that has changed. */
function cookieSession(name: string): Middleware {
  const change: Handler = (request, _, next) => {
    ;(request as { session?: object }).session = { seen: true }
    next()
  }
  return { name, handlers: [load(name, { keys: ['secret'] }), change], adds: COOKIE }
}

function morgan(name: string): Middleware {
  const log = require(name) as (format: string, options: object) => Handler
  return { name, handlers: [log('combined', { stream: { write: () => true } })] }
}

function responseTime(name: string): Middleware {
  return { name, handlers: [load(name)], adds: /^x-response-time$/ }
}

const HELMET: Middleware = {
  name: 'helmet',
  handlers: [load('helmet')],
  adds: /^(?:content-security-policy|cross-origin-.*|origin-agent-cluster|referrer-policy|strict-transport-security|x-.*)$/,
}

const CORS: Middleware = {
  name: 'cors',
  handlers: [load('cors', { preflightContinue: true })],
  adds: /^(?:access-control-.*|vary)$/,
}

const ON_HEADERS_1: Middleware = {
  name: 'on-headers 1.0',
  handlers: [
    (_, response, next) => {
      const onHeaders = require('on-headers-1') as (response: ServerResponse, listener: () => void) => void
      onHeaders(response, () => response.setHeader('X-On-Headers', '1'))
      next()
    },
  ],
  adds: /^x-on-headers$/,
}

function chain(name: string, ...middleware: readonly Middleware[]): Chain {
  return {
    name,
    handlers: middleware.flatMap(({ handlers }) => handlers),
    adds: middleware.flatMap(({ adds }) => adds ?? []),
  }
}

/** What hosts write themselves: it takes chunks for text, drops the encoding, and forgets to return anything. */
const TAP: Middleware = {
  name: 'a tap on what is written',
  handlers: [
    (_, response, next) => {
      const write = response.write.bind(response) as (text: string) => boolean
      const end = response.end.bind(response) as (text?: string) => ServerResponse
      const tapped: string[] = []
      function tap(chunk: Buffer | string): string {
        return (tapped[0] = chunk.toString())
      }
      Object.assign(response, {
        write: (chunk: Buffer | string) => void write(tap(chunk)),
        end: (chunk?: Buffer | string) => void end(chunk && tap(chunk)),
      })
      next()
    },
  ],
}

/** The same of `writeHead`: it looks at the response, and not at what else it is given. */
const LATE_FIELD: Middleware = {
  name: 'a late field',
  handlers: [
    (_, response, next) => {
      const writeHead = response.writeHead.bind<(status: number) => ServerResponse>(response)
      response.writeHead = (status: number) => {
        response.setHeader('X-Fields', response.getHeaderNames().join())
        return writeHead(status)
      }
      next()
    },
  ],
  adds: /^x-fields$/,
}

function alone(middleware: Middleware): Chain {
  return chain(middleware.name, middleware)
}

const COMPRESSIONS = ['compression', 'compression-1.7'].flatMap((name) =>
  [1024, 0].map((from) => compression(name, from)),
)
const SESSIONS = ['express-session', 'express-session-1.18.0'].map(expressSession)
const COOKIE_SESSIONS = ['cookie-session', 'cookie-session-2.0'].map(cookieSession)
const LOGS = ['morgan', 'morgan-1.10.0'].map(morgan)
const TIMES = ['response-time', 'response-time-2.3.2'].map(responseTime)

/** Each middleware alone, and all of them as a host may have them. */
export const CHAINS: readonly Chain[] = [
  ...[...COMPRESSIONS, ...SESSIONS, ...COOKIE_SESSIONS, ...LOGS, ...TIMES].map(alone),
  ...[HELMET, CORS, ON_HEADERS_1, POLKA_COMPRESSION, TAP, LATE_FIELD].map(alone),
  // A request has one session: it is kept by the one or by the other.
  chain('all, as of today', LOGS[0]!, TIMES[0]!, HELMET, CORS, COMPRESSIONS[0]!, SESSIONS[0]!),
  chain('all, the session in a cookie', COMPRESSIONS[1]!, LOGS[0]!, TIMES[0]!, HELMET, CORS, COOKIE_SESSIONS[0]!),
  chain('all, in old versions', LOGS[1]!, TIMES[1]!, HELMET, CORS, COMPRESSIONS[2]!, SESSIONS[1]!, ON_HEADERS_1),
  chain('all, old, in another order', ON_HEADERS_1, SESSIONS[1]!, COMPRESSIONS[3]!, TIMES[1]!, LOGS[1]!, HELMET, CORS),
]
