import { createServer, type RequestListener } from 'node:http'
import { createServer as createHttp2Server, createSecureServer } from 'node:http2'
import { createServer as createHttpsServer } from 'node:https'
import { getRequestListener, serve as serveHono, type HttpBindings, type ServerType } from '@hono/node-server'
import middie from '@fastify/middie'
import connect from 'connect'
import express from 'express'
import fastify, { type FastifyInstance } from 'fastify'
import { Hono, type MiddlewareHandler } from 'hono'
import Koa from 'koa'
import type { PlantStore } from '../../src/index.ts'
import { TLS } from '../support/wire/tls/certificate.ts'
import type { Protocol } from '../support/wire/client.ts'
import { close, listen, portOf } from '../support/wire/service.ts'

/** A server that has a service mounted in it. */
export interface Mounted {
  readonly port: number
  close(): Promise<void>
}

/** A host, and how a service is mounted in it. */
export interface Host {
  readonly name: string
  readonly protocol: Protocol
  /** What comes before `/plants`, and is no part of the `req.url` that the service gets. */
  readonly prefix: string
  /** What comes before `/plants` in the `req.url` that the service gets. */
  readonly basePath: string
  /** Whether what is no resource of the service is answered by the host: 200, {@link HOST_BODY}. */
  readonly passesOn: boolean
  /** Header fields that the host adds to each answer. */
  readonly adds: Readonly<Record<string, string>>
  mount(plantStore: PlantStore): Promise<Mounted>
}

export const HOST_BODY = 'answered by the host'

function host(name: string, mount: Host['mount'], options: Partial<Host> = {}): Host {
  return { name, mount, protocol: 'http', prefix: '', basePath: '', passesOn: true, adds: {}, ...options }
}

export async function start(server: ServerType): Promise<Mounted> {
  await listen(server)
  return mounted(server)
}

function mounted(server: ServerType): Mounted {
  return { port: portOf(server), close: () => close(server) }
}

/** Puts the service before another listener, which is asked for whatever is no resource of the service. */
function before(listener: (...args: Parameters<RequestListener>) => unknown, plantStore: PlantStore): RequestListener {
  return (request, response) => plantStore(request, response, () => void listener(request, response))
}

const BY_EXPRESS = { 'x-powered-by': 'Express' }

function createExpress(prefix: string, plantStore: PlantStore): express.Express {
  const app = express()
  app.use(prefix, plantStore)
  return app.use((_, response) => void response.end(HOST_BODY))
}

/** Fastify refuses a path with a malformed escape before any hook, and asks `frameworkErrors` how. */
function createFastify(plantStore: PlantStore): FastifyInstance {
  const app = fastify({
    frameworkErrors: (_, request, reply) => plantStore(request.raw, reply.raw),
  })
  return app.setNotFoundHandler((_, reply) => reply.code(200).send(HOST_BODY))
}

async function startFastify(app: FastifyInstance): Promise<Mounted> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  return mounted(app.server)
}

interface HonoEnv {
  Bindings: HttpBindings
}

function createHono(...middleware: MiddlewareHandler<HonoEnv>[]): Hono<HonoEnv> {
  const app = new Hono<HonoEnv>()
  for (const handler of middleware) app.use(handler)
  app.all('*', (context) => context.text(HOST_BODY))
  return app
}

const CORE = { passesOn: false }

export const HOSTS: readonly Host[] = [
  host('node:http', (plantStore) => start(createServer(plantStore)), CORE),
  host(
    'node:http that ends empty bodies first',
    (plantStore) => start(createServer({ optimizeEmptyRequests: true }, plantStore)),
    CORE,
  ),
  host('node:https', (plantStore) => start(createHttpsServer(TLS, plantStore)), { ...CORE, protocol: 'https' }),
  host('node:http2', (plantStore) => start(createHttp2Server(plantStore)), { ...CORE, protocol: 'h2c' }),
  host('node:http2 over TLS', (plantStore) => start(createSecureServer(TLS, plantStore)), {
    ...CORE,
    protocol: 'h2',
  }),
  host(
    'node:http2 over TLS, asked in HTTP/1',
    (plantStore) => start(createSecureServer({ ...TLS, allowHTTP1: true }, plantStore)),
    { ...CORE, protocol: 'https' },
  ),

  host('node:http, before another listener', (plantStore) => {
    return start(createServer(before((_, response) => response.end(HOST_BODY), plantStore)))
  }),

  host('Express', (plantStore) => start(createServer(createExpress('/', plantStore))), { adds: BY_EXPRESS }),

  host('Express, under a prefix', (plantStore) => start(createServer(createExpress('/api/v1', plantStore))), {
    prefix: '/api/v1',
    adds: BY_EXPRESS,
  }),

  host('Connect', (plantStore) => {
    const app = connect()
    app.use(plantStore)
    app.use((_, response) => void response.end(HOST_BODY))
    return start(createServer(app))
  }),

  host('Fastify, by @fastify/middie', async (plantStore) => {
    const app = createFastify(plantStore)
    await app.register(middie)
    app.use(plantStore)
    return startFastify(app)
  }),

  host('Fastify, in a hook', (plantStore) => {
    const app = createFastify(plantStore)
    app.addHook('onRequest', (request, reply, done) => plantStore(request.raw, reply.raw, done))
    return startFastify(app)
  }),

  host(
    'Fastify, by reply.hijack(), under a prefix',
    (plantStore) => {
      const app = createFastify(plantStore)
      app.register(plants, { prefix: '/api/v1' })
      // In a handler it would be too late: Fastify reads the body before that.
      function plants(scope: FastifyInstance, _: unknown, done: () => void): void {
        scope.addHook('onRequest', (request, reply) => {
          reply.hijack()
          plantStore(request.raw, reply.raw)
        })
        scope.all('*', () => undefined)
        done()
      }
      return startFastify(app)
    },
    { ...CORE, basePath: '/api/v1' },
  ),

  host('Koa', (plantStore) => {
    const app = new Koa()
    app.use(async (context, next) => {
      const { req, res } = context
      const isPassedOn = await new Promise<boolean>((resolve) => {
        res.once('close', () => resolve(false))
        plantStore(req, res, () => resolve(true))
      })
      if (isPassedOn) await next()
      else context.respond = false
    })
    app.use((context) => {
      context.body = HOST_BODY
    })
    const listener = app.callback()
    return start(createServer((request, response) => void listener(request, response)))
  }),

  host('Hono', (plantStore) => {
    const app = createHono()
    return start(createServer(before(getRequestListener(app.fetch), plantStore)))
  }),

  host('Hono, in a middleware', (plantStore) => {
    const app = createHono((context, next) => {
      const { incoming, outgoing } = context.env
      return new Promise((resolve) => plantStore(incoming, outgoing, () => resolve(next())))
    })
    return new Promise((resolve) => {
      const options = { fetch: app.fetch, hostname: '127.0.0.1', port: 0 }
      const server = serveHono(options, () => resolve(mounted(server)))
    })
  }),
]
