import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { test, type TestContext } from 'node:test'
import { CONTRACT_CASES, type ContractCase } from '../contract/contract-cases.ts'
import { testCases, addContentLength, type ComparedResponse } from '../contract/check-cases.ts'
import { connectClient } from '../support/wire/client.ts'
import {
  FRAMEWORK_EXAMPLES,
  isCompleteProgram,
  MANY_PLANTS_JSON,
  getMountPath,
  getProtocol,
  getSkipReason,
  startExample,
  addTestOwners,
} from '../support/package/examples.ts'
import { createProject, runScript } from '../support/package/packed-package.ts'
import { get, post } from '../support/wire/service.ts'

/** Returns an example of the document with the behavior of the framework that its tests have to consider. */
function createFramework(name: string, code: string) {
  return {
    name,
    prefix: getMountPath(code),
    /** Whether the framework itself rejects a path with a malformed percent-escape. */
    rejectsEscapes: code.includes('Fastify') && !code.includes('frameworkErrors'),
    /** Whether the framework, not the service, responds to paths that aren't resources; undefined if either may respond. */
    hasFallback: /plants\([^()]*, (?:done|\(\) =>)|\.(?:use|pre)\(/.test(code) as boolean | undefined,
    /** Whether the requests that the service gets are converted from fetch requests. */
    isFetch: false,
    code,
  }
}

type Framework = ReturnType<typeof createFramework>

/** Returns a server for an h3 handler that the document shows as a route file. */
function createRouteFramework(name: string, code: string) {
  const isOne = code.includes('fromNodeMiddleware')
  const handler = code.replace('export default', 'const handler =').replace("'h3'", isOne ? "'h3-1'" : "'h3'")
  const serve = isOne
    ? `import { createApp, toNodeListener } from 'h3-1'
       createServer(toNodeListener(createApp().use(handler))).listen(3000)`
    : `import { H3, toNodeHandler } from 'h3'
       createServer(toNodeHandler(new H3().all('/**', handler))).listen(3000)`
  const host = createFramework(name, `import { createServer } from 'node:http'\n${handler}\n${serve}`)
  return { ...host, rejectsEscapes: !isOne, hasFallback: false }
}

const FRAMEWORKS = FRAMEWORK_EXAMPLES.flatMap(({ heading, code, line }) => {
  const name = `${heading}, at line ${line}`
  if (heading === 'Nitro and Nuxt') return createRouteFramework(name, code)
  // Next.js is tested below, and serverless functions in examples.test.ts.
  if (!isCompleteProgram(code) || heading === 'Next.js') return []
  if (code.includes('fromNodeMiddleware')) return createFramework(`${name}, with h3 1`, code.replace("'h3'", "'h3-1'"))
  const host = createFramework(name, code)
  if (!code.includes("'express'")) return host
  return [host, createFramework(`${name}, with Express 4`, code.replace("'express'", "'express-4'"))]
})

for (const host of FRAMEWORKS) {
  test(host.name, { skip: getSkipReason(host.code), timeout: 120_000 }, (t) => testFramework(t, host))
}

const nextExamples = FRAMEWORK_EXAMPLES.filter(({ heading }) => heading === 'Next.js').map(({ code }) => code)
const nextServer = nextExamples.find(isCompleteProgram)!

test('Next.js', { skip: getSkipReason(nextServer), timeout: 300_000 }, async (t) => {
  const page = "export default function Page() { return 'Welcome.' }"
  const routes = nextExamples.filter((code) => !isCompleteProgram(code))
  const files = routes.map((code) => [/^\/\/ (.*)\n/.exec(code)![1]!, addTestOwners(code)] as const)
  const project = await createProject(t, { ...Object.fromEntries(files), 'pages/index.js': page })
  await runScript('next build', project, { NEXT_TELEMETRY_DISABLED: '1' })

  const inNext = { ...createFramework('Next.js', nextServer), hasFallback: undefined }
  await t.test('in a custom server', (t) => testFramework(t, inNext, project))
  for (const [path] of files) {
    // Moves the service of the custom server to another path, so that the route responds.
    const code = nextServer.replace('/api', '/elsewhere')
    const isFetch = path.startsWith('app/')
    const route = { ...inNext, code, prefix: isFetch ? '/rest' : '/api', rejectsEscapes: true, isFetch }
    await t.test(path, (t) => testFramework(t, route, project))
  }
})

/** @param project the folder of a project that is already built, if the framework needs a build */
async function testFramework(t: TestContext, framework: Framework, project?: string) {
  const { prefix, hasFallback, isFetch } = framework
  // Vite has its own allowlist of hosts.
  const code = addTestOwners(framework.code).replace('cors: false', 'cors: false, allowedHosts: true')
  const client = connectClient(getProtocol(framework.code), (await startExample(t, code, project)).port)
  t.after(() => client.close())

  const isHttp1 = getProtocol(framework.code) !== 'h2'

  /** Removes the headers that the framework adds to a response or changes. */
  function ownOf({ status, headers, body }: ComparedResponse): ComparedResponse {
    const others = ['server', 'vary', 'x-powered-by', ...(isFetch ? ['content-length'] : [])]
    const own = Object.entries(headers).filter(([name]) => !others.includes(name))
    return { status, headers: Object.fromEntries(own), body }
  }

  await testCases(t, {
    name: framework.name,
    client,
    prefix,
    isHttp1: isHttp1 && !isFetch,
    passesOn: (row) => isHandledByService(row, framework),
    expected: (row) => ownOf(addContentLength(framework.code.includes('basePath') ? addPrefix(prefix, row) : row)),
    normalize: ownOf,
  })

  const noFallback = !hasFallback && 'the service responds to them'
  await t.test(`${framework.name} itself responds to paths that are not resources`, { skip: noFallback }, async () => {
    for (const { name, request } of CONTRACT_CASES['paths']!.filter(isNoResource)) {
      const sent = request('ada')
      const { body } = await client.send({ ...sent, path: prefix + sent.path })
      assert.ok(!body.startsWith(NO_RESOURCE), name)
    }
  })

  await t.test(`${framework.name} sends a complete list of 5,000 plants`, async () => {
    const response = ownOf(await client.send(get('many', `${prefix}/plants`)))
    assert.deepEqual(response, {
      status: 200,
      headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
      body: MANY_PLANTS_JSON,
    })
  })

  const uploadTest = `${framework.name} rejects a body over the size limit before the body has ended`
  await t.test(uploadTest, { skip: !isHttp1 && 'HTTP/2' }, async () => {
    const request = post('ada', '', ['Transfer-Encoding', 'chunked'])
    const upload = client.open({ ...request, path: `${prefix}/plants`, body: undefined })
    upload.on('error', () => undefined).write('a'.repeat(70_000))
    const [{ statusCode, headers }] = (await once(upload, 'response')) as [IncomingMessage]
    upload.end()
    assert.deepEqual([statusCode, headers.connection], [413, 'close'])
  })
}

const NO_RESOURCE = '{"error":40400,'

const isNoResource = ({ body }: ContractCase) => body.startsWith(NO_RESOURCE)

/** Returns whether the service, and not the framework, responds to the request of a row. */
function isHandledByService(row: ContractCase, { hasFallback, rejectsEscapes }: Framework) {
  if (rejectsEscapes && /^\/plants\/%(?:zz|E0)/.test(row.request('').path)) return false
  return hasFallback === false || !isNoResource(row)
}

/** Adds the prefix to the message of a 404, as a service with a basePath does. */
function addPrefix(prefix: string, row: ContractCase): ContractCase {
  return { ...row, body: row.body.replace('The plants are at ', `The plants are at ${prefix}`) }
}
