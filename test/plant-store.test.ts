import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createServer, IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { suite, test } from 'node:test'
import fastify from 'fastify'
import Koa from 'koa'
import { serveAndConnect } from './support/wire/client.ts'
import { bearer, createService, sendRequest, serve, servePlants } from './support/wire/service.ts'

test('the package runs with --frozen-intrinsics', () => {
  const program = `
    import ${JSON.stringify(import.meta.resolve('../src/conformance/store-conformance.ts'))}
    import ${JSON.stringify(import.meta.resolve('../src/stores/postgres/postgres-store.ts'))}
    import ${JSON.stringify(import.meta.resolve('../src/stores/sqlite/sqlite-store.ts'))}
    import { createPlantStore } from ${JSON.stringify(import.meta.resolve('../src/index.ts'))}
    import { createServer } from ${JSON.stringify(import.meta.resolve('../src/http-server/create-server.ts'))}
    const { server, drain } = createServer(createPlantStore({ tokens: { secret: 'ada' } }))
    server.listen(0, '127.0.0.1', async () => {
      const { status } = await fetch('http://127.0.0.1:' + server.address().port + '/plants')
      console.log(status)
      await drain()
    })`
  const args = ['--frozen-intrinsics', ...process.execArgv, '--input-type=module', '--eval', program]
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.equal(stdout, '401\n', stderr)
})

test('the package runs after a host has frozen the prototypes of errors', () => {
  const program = `
    Object.freeze(Error.prototype)
    const { StoreUnavailableError } = await import(${JSON.stringify(import.meta.resolve('../src/index.ts'))})
    await import(${JSON.stringify(import.meta.resolve('../src/stores/postgres/postgres-store.ts'))})
    console.log(String(new StoreUnavailableError('away')))`
  const args = [...process.execArgv, '--input-type=module', '--eval', program]
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.equal(stdout, 'StoreUnavailableError: away\n', stderr)
})

test('hands a request for a path that it does not have to the next listener', async (t) => {
  const plants = createService()
  const server = await serve(
    t,
    createServer((request, response) => plants(request, response, () => response.end('next'))),
  )
  const [other, own] = await Promise.all(
    ['/other', '/plants'].map((path) => sendRequest(server, { method: 'GET', path, fields: [] })),
  )
  assert.deepEqual([other!.status, other!.body, own!.status], [200, 'next', 401])
})

for (const basePath of ['', '/api/v1', '/$&']) {
  test(`says where the plants are with the basePath "${basePath}"`, async (t) => {
    const server = await servePlants(t, { basePath })
    const { status, body } = await sendRequest(server, { method: 'GET', path: `${basePath}/plants/`, fields: [] })
    const message = `There is no resource at this path. The plants are at ${basePath}/plants.`
    assert.deepEqual([status, body], [404, JSON.stringify({ error: 40400, message })])
  })
}

// HTTP/1 of Node knows its methods, HTTP/2 takes any name.
test('refuses methods that are named like members of every object', async (t) => {
  const client = await serveAndConnect(t, 'h2c', createService())
  for (const method of ['constructor', 'toString', '__proto__']) {
    const { status, headers } = await client.send({ method, path: '/plants/1', fields: bearer('ada') })
    assert.deepEqual([status, headers['allow']], [405, 'DELETE, OPTIONS'])
  }
})

/** A service that is mounted as a compiler would refuse it. */
const untypedService = createService() as unknown as (...args: unknown[]) => undefined

suite('what is not of node:http is refused: it says what it got, what it needs, and where that is shown', () => {
  for (const [name, got, ask] of [
    ['nothing', /undefined, undefined/, () => new Promise(() => untypedService())],
    ['a Request', /\[?Request.*, undefined/, () => new Promise(() => untypedService(new Request('http://a/plants')))],
    ['what Koa has', /\[Object\], \[Function.*\]/, requestKoa],
    ['what Fastify has', /\[Request\], \[Reply\]/, requestFastify],
  ] as const) {
    const hint = 'pass the raw objects that your framework wraps, see docs/frameworks\\.md'
    const message = new RegExp(
      `^plant-store must be called with a node:http request and response, not \\(.*${got.source}.*\\): ${hint}$`,
    )
    test(name, () => assert.rejects(ask, { name: 'TypeError', message }))
  }
})

function requestKoa(): Promise<unknown> {
  return new Promise((_, reject) => {
    const app = new Koa().use(untypedService).on('error', reject)
    const request = new IncomingMessage(new Socket())
    void app.callback()(request, new ServerResponse(request))
  })
}

function requestFastify(): Promise<unknown> {
  return new Promise((_, reject) => {
    const app = fastify().all('/plants', untypedService)
    app.setErrorHandler((error) => reject(error as Error))
    void app.inject('/plants')
  })
}
