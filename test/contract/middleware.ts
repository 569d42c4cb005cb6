import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'

/** What a host puts before a service. */
export type Handler = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void) => void

/** A middleware as it stands in a chain. */
interface Middleware {
  readonly name: string
  readonly handlers: readonly Handler[]
  /** The names of the header fields that it adds to each response with a body, and may add to others. */
  readonly adds: RegExp | undefined
}

/** Middleware in the order in which a host uses it. */
export interface Chain {
  readonly name: string
  readonly handlers: readonly Handler[]
  readonly adds: readonly RegExp[]
}

type Factory = (options?: object) => Handler

const require = createRequire(import.meta.url)

/** By name, as an alias for an old version has no types. */
function load(name: string, options?: object): Handler {
  return (require(name) as Factory)(options)
}

const COMPRESSION = /^(?:vary|content-encoding)$/
const COOKIE = /^set-cookie$/

/** The version that hosts install today, and the last one that has on-headers 1.0 in it. */
function compression(name: string, options?: object): Middleware {
  return { name: `${name} ${JSON.stringify(options ?? {})}`, handlers: [load(name, options)], adds: COMPRESSION }
}

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
  return { name, handlers: [log('combined', { stream: { write: () => true } })], adds: undefined }
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

const COMPRESSIONS = [
  compression('compression'),
  compression('compression', { threshold: 0 }),
  compression('compression-1.7'),
  compression('compression-1.7', { threshold: 0 }),
]
const SESSIONS = ['express-session', 'express-session-1.18.0'].map(expressSession)
const COOKIE_SESSIONS = ['cookie-session', 'cookie-session-2.0'].map(cookieSession)
const LOGS = ['morgan', 'morgan-1.10.0'].map(morgan)
const TIMES = ['response-time', 'response-time-2.3.2'].map(responseTime)

/** Each middleware alone, and all of them as a host may have them. */
export const CHAINS: readonly Chain[] = [
  ...[...COMPRESSIONS, ...SESSIONS, ...COOKIE_SESSIONS, ...LOGS, ...TIMES, HELMET, CORS, ON_HEADERS_1].map(
    (middleware) => chain(middleware.name, middleware),
  ),
  // A request has one session: it is kept by the one or by the other.
  chain('all, as of today', LOGS[0]!, TIMES[0]!, HELMET, CORS, COMPRESSIONS[0]!, SESSIONS[0]!),
  chain('all, the session in a cookie', COMPRESSIONS[1]!, LOGS[0]!, TIMES[0]!, HELMET, CORS, COOKIE_SESSIONS[0]!),
  chain('all, in old versions', LOGS[1]!, TIMES[1]!, HELMET, CORS, COMPRESSIONS[2]!, SESSIONS[1]!, ON_HEADERS_1),
  chain('all, old, in another order', ON_HEADERS_1, SESSIONS[1]!, COMPRESSIONS[3]!, TIMES[1]!, LOGS[1]!, HELMET, CORS),
]
