import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { build, transform } from 'esbuild'
import { memoryStore } from '../../src/index.ts'
import { serveBlankPage, openPage, skipWithoutChromium } from '../support/page/web-ui-page.ts'
import { createProject, packPackage, runScript } from '../support/package/packed-package.ts'
import { skipWithoutPeers } from '../support/package/extra-packages.ts'
import { startProgram, TOKEN } from '../support/program/program.ts'
import { createService, getPort, serve } from '../support/wire/service.ts'

/** The client's maximum size in an app bundle, minified and compressed, as stated in docs/clients.md. */
const MAX_BYTES = 4200

/** Bundles the client for browsers. The build fails if the client imports a Node module. */
async function bundleClient(options: object = {}): Promise<string> {
  const { folder } = await packPackage()
  const { outputFiles } = await build({
    stdin: { contents: "export * from 'plant-store/client'", resolveDir: folder },
    bundle: true,
    platform: 'browser',
    format: 'esm',
    write: false,
    ...options,
  })
  return outputFiles[0]!.text
}

test(`the client is at most ${MAX_BYTES} bytes long when minified and compressed`, async () => {
  const { length } = gzipSync(await bundleClient({ minify: true }))
  assert.ok(length <= MAX_BYTES, `the client has ${length} bytes`)
})

test('the client uses only syntax that browsers have supported since 2022', async () => {
  const text = await bundleClient()
  const { code } = await transform(text, { target: 'es2022' })
  const { code: unchanged } = await transform(text, { target: 'esnext' })
  assert.equal(code, unchanged)
})

/** Typical usage of a client. Returns the results with ids as strings, because JSON doesn't support bigints. */
const USAGE = `
  async function use(plants, PlantStoreError) {
    const ids = [-9223372036854775808n, 9007199254740993n, 9223372036854775807n]
    for (const id of ids) await plants.create({ id, name: '{"id":1', tag: String(id) })
    const listed = []
    for await (const { id, name, tag } of plants.list()) listed.push([typeof id, String(id), name, tag])
    const { plants: [first], next } = await plants.listPage({ after: ids[0], limit: 1 })
    const error = await plants.create({ id: 9007199254740993n, name: 'Fern' }).catch((error) => error)
    const reason = new Error('aborted')
    const aborted = await plants.delete(1, { signal: AbortSignal.abort(reason) }).catch((error) => error === reason)
    await plants.delete(9007199254740993n)
    const missing = await plants.delete(9007199254740993n).catch(({ error }) => error)
    const id = typeof error.requestId
    return { listed, page: [String(first.id), String(next)], isError: error instanceof PlantStoreError, error: error.error, id, aborted, missing }
  }`

const EXPECTED = {
  listed: ['-9223372036854775808', '9007199254740993', '9223372036854775807'].map((id) => [
    'bigint',
    id,
    '{"id":1',
    id,
  ]),
  page: ['9007199254740993', '9007199254740993'],
  isError: true,
  error: 40900,
  id: 'string',
  aborted: true,
  missing: 40401,
}

const MAIN = `
  import { createPlantClient, PlantStoreError } from 'plant-store/client'
  ${USAGE}
  const { URL: url, TOKEN: token } = process.env
  console.log(JSON.stringify(await use(createPlantClient({ url, token }), PlantStoreError)))`

const MAIN_CJS = `
  const { createPlantClient, PlantStoreError } = require('plant-store/client')
  ${USAGE}
  const { URL: url, TOKEN: token } = process.env
  use(createPlantClient({ url, token }), PlantStoreError).then((result) => console.log(JSON.stringify(result)))`

for (const [name, file, code, command, skip] of [
  ['Node', 'main.mjs', MAIN, 'node main.mjs', false],
  ['Node, with require()', 'main.cjs', MAIN_CJS, 'node main.cjs', false],
  ['Bun', 'main.mjs', MAIN, 'bun main.mjs', skipWithoutPeers],
  ['Deno', 'main.mjs', MAIN, 'deno run --allow-net --allow-env --no-prompt main.mjs', skipWithoutPeers],
] as const) {
  test(`the client works in ${name}`, { skip, timeout: 120_000 }, async (t) => {
    const { url } = await startProgram(t)
    const project = await createProject(t, { [file]: code })
    const printed = await runScript(command, project, { URL: url, TOKEN, HOME: project })
    assert.deepEqual(JSON.parse(printed), EXPECTED)
  })
}

test('a process exits as soon as its client calls have completed', async (t) => {
  const { url } = await startProgram(t)
  const code = `
    import { createPlantClient } from 'plant-store/client'
    const signal = AbortSignal.timeout(100)
    const plants = createPlantClient({ url: process.env.URL, token: process.env.TOKEN, timeoutMs: 600_000 })
    await plants.create({ id: 1, name: 'Fern' })
    const hanging = createPlantClient({ url: 'http://host', token: 'a', timeoutMs: 600_000, fetch: () => new Promise(() => {}) })
    await hanging.delete(1, { signal }).catch(({ name }) => console.log(name))
    const refused = createPlantClient({ url: 'http://host', token: 'a', fetch: async () => new Response('', { status: 503, headers: { 'Retry-After': '600' } }) })
    await refused.delete(1, { signal: AbortSignal.timeout(100) }).catch(({ name }) => console.log(name))`
  const project = await createProject(t, { 'main.mjs': code })
  assert.equal(
    await runScript('timeout 25 node main.mjs', project, { URL: url, TOKEN }),
    'TimeoutError\nTimeoutError\n',
  )
})

suite('in Chromium, the client', { skip: skipWithoutChromium, timeout: 240_000 }, () => {
  /** Bundles the client as a script that makes the exports available as members of the global `client`. */
  const bundleScript = (): Promise<string> => bundleClient({ format: 'iife', globalName: 'client' })

  async function createClientIn(t: TestContext, url: string, token: string) {
    const page = await openPage(t, serveBlankPage)
    await page.page.addScriptTag({ content: await bundleScript() })
    await page.evaluate(`void (globalThis.plants = client.createPlantClient(${JSON.stringify({ url, token })}))`)
    return page
  }

  test('works on a page of another origin', async (t) => {
    const { url } = await startProgram(t, { PLANT_STORE_CORS_ORIGINS: '*' })
    const page = await createClientIn(t, url, TOKEN)
    assert.deepEqual(
      await page.evaluate(`(() => { ${USAGE}; return use(plants, client.PlantStoreError) })()`),
      EXPECTED,
    )
  })

  test('reads all pages of a list even if the browser hides the Link header from another origin', async (t) => {
    const store = memoryStore()
    for (let id = 1n; id <= 1000n; id++) void store.create('ada', { id, name: 'Fern' })
    const service = createService({ store })
    const server = await serve(t, (request, response) => {
      response.setHeader('Access-Control-Allow-Origin', '*').setHeader('Access-Control-Allow-Headers', 'Authorization')
      service(request, response)
    })
    const page = await createClientIn(t, `http://127.0.0.1:${getPort(server)}`, 'ada')
    const count = await page.evaluate(`(async () => {
      let count = 0
      for await (const { id } of plants.list()) count++
      return count
    })()`)
    assert.equal(count, 1000)
  })

  test('does not follow a redirect', async (t) => {
    const requests: (string | undefined)[] = []
    const server = await serve(t, (request, response) => {
      requests.push(`${request.method} ${request.url}`)
      response.setHeader('Access-Control-Allow-Origin', '*').setHeader('Access-Control-Allow-Headers', 'Authorization')
      response.writeHead(request.method === 'OPTIONS' ? 204 : 307, { Location: '/other' }).end()
    })
    const page = await createClientIn(t, `http://127.0.0.1:${getPort(server)}`, 'ada')
    const error = await page.evaluate(
      'plants.listPage().catch(({ name, status, message }) => ({ name, status, message }))',
    )
    const message = "unexpected response (status 0): it isn't from plant-store, or it's incomplete"
    assert.deepEqual(error, { name: 'PlantStoreError', status: 0, message })
    assert.deepEqual(requests, ['OPTIONS /plants?limit=500&include=id', 'GET /plants?limit=500&include=id'])
  })
})
