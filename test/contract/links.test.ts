import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { suite, test } from 'node:test'
import { memoryStore, type PlantStore } from '../../src/index.ts'
import { serveAndConnect } from '../support/client.ts'
import { importPeer, skipWithoutPeers } from '../support/extra-packages.ts'
import { createService, get } from '../support/service.ts'

/** An Express app or router. */
type Express = RequestListener & { use(path: string, listener: RequestListener): Express }
const importExpress = () => importPeer<Record<'default' | 'Router', () => Express>>('express')

interface Fastify {
  register(plugin: unknown): PromiseLike<unknown>
  use(path: string, listener: RequestListener): void
  ready(): PromiseLike<unknown>
  readonly routing: RequestListener
}

/** Ways to mount the service, each with the resulting path of `/plants`. */
const MOUNTS: Readonly<Record<string, readonly [string, () => Promise<RequestListener> | RequestListener]>> = {
  'node:http': ['/plants', createPlantsService],
  'node:http2': ['/plants', createPlantsService],
  'a basePath': ['/api/v1/plants', () => createPlantsService('/api/v1')],
  Express: ['/api/plants', async () => (await importExpress()).default().use('/api', createPlantsService())],
  'nested Express routers': [
    '/api/v1/plants',
    async () => {
      const { default: express, Router } = await importExpress()
      return express().use('/api', Router().use('/v1', createPlantsService()))
    },
  ],
  '@fastify/middie': [
    '/api/plants',
    async () => {
      const app = (await importPeer<{ fastify: () => Fastify }>('fastify')).fastify()
      await app.register(await importPeer('@fastify/middie'))
      app.use('/api', createPlantsService())
      await app.ready()
      return app.routing
    },
  ],
}

/** Creates a service in which ada has three plants. */
function createPlantsService(basePath = ''): PlantStore {
  const store = memoryStore()
  for (const id of [1n, 2n, 3n]) void store.create('ada', { id, name: `plant ${id}` })
  return createService({ store, basePath })
}

function parseNextLink(link: string | undefined): string {
  return /^<(.+)>; rel="next"$/.exec(link ?? '')![1]!
}

suite('the Link header contains the URL of the next page', () => {
  for (const [mount, [path, create]] of Object.entries(MOUNTS)) {
    test(`under ${mount}`, { skip: /Express|middie/.test(mount) && skipWithoutPeers }, async (t) => {
      const client = await serveAndConnect(t, mount === 'node:http2' ? 'h2c' : 'http', await create())
      const { headers, body } = await client.send(get('ada', `${path}?limit=1&include=id&other=1`))
      assert.equal(body, '[{"id":1,"name":"plant 1"}]')
      const reference = parseNextLink(headers['link'])
      assert.equal(reference, 'plants?limit=1&after=1&include=id')
      const { pathname, search } = new URL(reference, `http://host${path}?limit=1`)
      assert.equal(pathname + search, `${path}?limit=1&after=1&include=id`)
      assert.equal((await client.send(get('ada', pathname + search))).body, '[{"id":2,"name":"plant 2"}]')
    })
  }

  for (const [what, method, target] of [
    ['a HEAD request', 'HEAD', '/api/plants?limit=1'],
    ['a request with an absolute-form target', 'GET', 'http://host/api/plants?limit=1'],
    ['a request with a percent-encoded path', 'GET', '/%61pi/%70lants?limit=1'],
  ] as const) {
    test(`in the response to ${what}`, async (t) => {
      const client = await serveAndConnect(t, 'http', createPlantsService('/api'))
      const { headers } = await client.send({ ...get('ada', target), method })
      const { href } = new URL(parseNextLink(headers['link']), new URL(target, 'http://host'))
      assert.equal(href.replace('%61', 'a'), 'http://host/api/plants?limit=1&after=1')
    })
  }
})
