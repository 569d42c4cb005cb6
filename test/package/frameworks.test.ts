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

/** How a host is tried. */
function createFramework(name: string, code: string) {
  return {
    name,
    prefix: getMountPath(code),
    /** Whether the host itself refuses a path with a malformed escape. */
    rejectsEscapes: code.includes('Fastify') && !code.includes('frameworkErrors'),
    /** Whether the host, and not the service, answers what is no resource of the service; undefined if either may. */
    hasFallback: /plants\([^()]*, (?:done|\(\) =>)|\.(?:use|pre)\(/.test(code) as boolean | undefined,
    /** Whether the requests that the service gets are made of those of `fetch`. */
    isFetch: false,
    code,
  }
}

type Framework = ReturnType<typeof createFramework>

/** Serves a handler of h3 that the document shows as a file of a route. */
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
  // Next.js stands below, and functions that no server calls are tried elsewhere.
  if (!isCompleteProgram(code) || heading === 'Next.js') return []
  if (code.includes('fromNodeMiddleware')) return createFramework(`${name}, with h3 1`, code.replace("'h3'", "'h3-1'"))
  const host = createFramework(name, code)
  if (!code.includes("'express'")) return host
  return [host, createFramework(`${name}, with Express 4`, code.replace("'express'", "'express-4'"))]
})

for (const host of FRAMEWORKS) {
  test(host.name, { skip: getSkipReason(host.code), timeout: 300_000 }, (t) => testFramework(t, host))
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
  await t.test('in a server of its own', (t) => testFramework(t, inNext, project))
  for (const [path] of files) {
    // The service of the server itself is elsewhere.
    const code = nextServer.replace('/api', '/elsewhere')
    const isFetch = path.startsWith('app/')
    const route = { ...inNext, code, prefix: isFetch ? '/rest' : '/api', rejectsEscapes: true, isFetch }
    await t.test(path, (t) => testFramework(t, route, project))
  }
})

/** @param project where the host is built already, if it takes that */
async function testFramework(t: TestContext, framework: Framework, project?: string) {
  const { prefix, hasFallback, isFetch } = framework
  // Vite has a list of hosts of its own.
  const code = addTestOwners(framework.code).replace('cors: false', 'cors: false, allowedHosts: true')
  const client = connectClient(getProtocol(framework.code), (await startExample(t, code, project)).port)
  t.after(() => client.close())

  const isHttp1 = getProtocol(framework.code) !== 'h2'

  /** Without what a host adds to each answer, or takes away. */
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

  await t.test('answers itself what is no resource of it', { skip: !hasFallback && 'has no answer' }, async () => {
    for (const { name, request } of CONTRACT_CASES['paths']!.filter(isNoResource)) {
      const asked = request('ada')
      const { body } = await client.send({ ...asked, path: prefix + asked.path })
      assert.ok(!body.startsWith(NO_RESOURCE), name)
    }
  })

  await t.test('sends a list of 5,000 plants whole', async () => {
    const answer = ownOf(await client.send(get('many', `${prefix}/plants`)))
    assert.deepEqual(answer, {
      status: 200,
      headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
      body: MANY_PLANTS_JSON,
    })
  })

  await t.test('refuses an upload that is too large while it is sent', { skip: !isHttp1 && 'HTTP/2' }, async () => {
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

/** Whether the service answers a row, and not the host. */
function isHandledByService(row: ContractCase, { hasFallback, rejectsEscapes }: Framework) {
  if (rejectsEscapes && /^\/plants\/%(?:zz|E0)/.test(row.request('').path)) return false
  return hasFallback === false || !isNoResource(row)
}

/** A case of a service that knows the prefix of its paths: it says where the plants are. */
function addPrefix(prefix: string, row: ContractCase): ContractCase {
  return { ...row, body: row.body.replace('The plants are at ', `The plants are at ${prefix}`) }
}
