import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { TestContext } from 'node:test'
import { getProtocol, startExample } from '../support/examples.ts'
import { connectClient } from '../support/client.ts'
import { bearer, del, get, post, type TestRequest, type TestResponse } from '../support/service.ts'

/** An example of docs/frameworks.md, with the behavior of the framework that its tests have to consider. */
export interface Framework {
  readonly name: string
  readonly code: string
  /** The path under which the example mounts the service. */
  readonly prefix: string
  /** Whether the framework itself rejects a path with a malformed percent-escape. */
  readonly rejectsEscapes: boolean
  /** Whether the framework, not the service, responds to other paths; undefined if either can respond. */
  readonly hasFallback: boolean | undefined
  /** Whether the framework converts `fetch` requests for the service. */
  readonly isFetch: boolean
}

/** A request, and the parts of its response that a framework can break. */
type Row = readonly [name: string, request: TestRequest, expected: TestResponse]

const PLANTS = 5000
const ID = 2n ** 53n + 1n

/** Changes an example so that each token identifies its own owner and the owner `many` has 5,000 plants. */
export function addTestOwners(code: string): string {
  return `
    import { memoryStore } from 'plant-store'
    const store = memoryStore()
    for (let id = 1n; id <= ${PLANTS}n; id++) store.create('many', { id, name: \`Plant \${id}\` })
    ${code.replace(
      "{ tokens: { 'a-long-random-token': 'ada' }",
      "{ store, authenticate: (token) => (token === 'refused' ? null : token)",
    )}`
}

const JSON_HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store' }
const success = (body: string, headers = {}) => ({ status: 200, headers: { ...JSON_HEADERS, ...headers }, body })
const failure = (error: number, headers = {}) => ({
  status: Math.trunc(error / 100),
  headers: { ...JSON_HEADERS, ...headers },
  body: `{"error":${error}}`,
})
const manyPlants = Array.from({ length: PLANTS }, (_, i) => ({ name: `Plant ${i + 1}` }))

/** The order matters: later rows list and delete what the first ones create. */
const ROWS: readonly Row[] = [
  ['creates a plant', post('ada', `{"id":${ID},"name":"Fern"}`), success('{"name":"Fern"}')],
  ['creates a second plant', post('ada', `{"id":${ID + 1n},"name":"Moss"}`), success('{"name":"Moss"}')],
  [
    'passes on the query and the Link header, with exact ids',
    get('ada', '/plants?limit=1&include=id'),
    success(`[{"id":${ID},"name":"Fern"}]`, { link: `<plants?limit=1&after=${ID}&include=id>; rel="next"` }),
  ],
  ['deletes a plant', del('ada', ID), { status: 204, headers: { 'cache-control': 'no-store' }, body: '' }],
  ['decodes percent-escapes in the path', get('ada', '/%70lants'), success('[{"name":"Moss"}]')],
  ['responds to HEAD without a body', { ...get('ada'), method: 'HEAD' }, success('')],
  [
    'responds to OPTIONS without a token',
    { method: 'OPTIONS', path: '/plants', fields: [] },
    { status: 204, headers: { allow: 'GET, HEAD, POST, OPTIONS' }, body: '' },
  ],
  [
    'rejects an unknown token',
    get('refused'),
    failure(40101, { 'www-authenticate': 'Bearer realm="plant-store", error="invalid_token"' }),
  ],
  ['rejects a body that is not JSON', post('ada', '{'), failure(40001)],
  ['sends a complete list of 5,000 plants', get('many'), success(JSON.stringify(manyPlants))],
]

/** Removes the headers that frameworks add or change, and the message of an error. */
function simplify({ status, headers, body }: TestResponse): TestResponse {
  const others = ['content-length', 'keep-alive', 'server', 'vary', 'x-powered-by']
  const own = Object.entries(headers).filter(([name]) => !others.includes(name))
  return { status, headers: Object.fromEntries(own), body: body.replace(/^({"error":\d+),.*}$/, '$1}') }
}

/**
 * Tests what a framework can break. test/contract/ tests the rest.
 * @param project the folder of a project that is already built, if the framework needs a build
 */
export async function checkFramework(t: TestContext, framework: Framework, project?: string): Promise<void> {
  const { prefix, hasFallback, isFetch, rejectsEscapes } = framework
  const protocol = getProtocol(framework.code)
  const { port } = await startExample(t, addTestOwners(framework.code), project)
  const client = connectClient(protocol, port)
  t.after(() => client.close())
  const send = (request: TestRequest) => client.send({ ...request, path: prefix + request.path })

  for (const [name, request, expected] of ROWS) {
    await t.test(name, async () => assert.deepEqual(simplify(await send(request)), expected))
  }

  await t.test('rejects a malformed percent-escape in the path', async () => {
    const { status, body } = await send(get('ada', '/plants/%zz'))
    assert.equal(status, 400)
    if (!rejectsEscapes) assert.match(body, /^{"error":40000,/)
  })

  await t.test('responds to other paths', { skip: hasFallback === undefined && 'either can respond' }, async () => {
    const { body } = await send(get('ada', '/pots'))
    assert.equal(body.startsWith('{"error":40400,'), !hasFallback)
  })

  const skip = (isFetch || protocol === 'h2') && 'not HTTP/1'
  await t.test('rejects a body over the size limit before the body has ended', { skip }, async () => {
    const fields = [...bearer('ada'), 'Content-Type', 'application/json', 'Transfer-Encoding', 'chunked']
    const upload = client.open({ method: 'POST', path: `${prefix}/plants`, fields })
    upload.on('error', () => undefined).write('a'.repeat(70_000))
    const [response] = (await once(upload, 'response')) as [IncomingMessage]
    upload.end()
    response.resume()
    assert.equal(response.statusCode, 413)
  })
}

/** Finds out from an example how its framework behaves. */
export function toFramework(name: string, code: string, prefix: string): Framework {
  return {
    name,
    code,
    prefix,
    rejectsEscapes: code.includes('Fastify') && !code.includes('frameworkErrors'),
    hasFallback: /plants\([^()]*, (?:done|\(\) =>)|\.use\(/.test(code),
    isFetch: false,
  }
}
