import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { test, type TestContext } from 'node:test'
import { CONTRACT_CASES, type ContractCase } from '../contract/cases.ts'
import { checkCases, withLength, type Reply } from '../contract/check-cases.ts'
import { connectTo } from '../support/wire/client.ts'
import {
  HOST_EXAMPLES,
  isProgram,
  MANY,
  prefixOf,
  protocolOf,
  skipExample,
  startExample,
  withOwners,
} from '../support/package/examples.ts'
import { createProject, runScript } from '../support/package/packed.ts'
import { get, post } from '../support/wire/service.ts'

/** How a host is tried. */
function hostOf(name: string, code: string) {
  return {
    name,
    prefix: prefixOf(code),
    /** Whether the host itself refuses a path with a malformed escape. */
    refusesEscapes: code.includes('Fastify') && !code.includes('frameworkErrors'),
    /** Whether the host, and not the service, answers what is no resource of the service; undefined if either may. */
    passesOn: /plants\([^()]*, (?:done|\(\) =>)|\.(?:use|pre)\(/.test(code) as boolean | undefined,
    /** Whether the requests that the service gets are made of those of `fetch`. */
    isFetch: false,
    code,
  }
}

type Host = ReturnType<typeof hostOf>

/** Serves a handler of h3 that the document shows as a file of a route. */
function hostOfRoute(name: string, code: string) {
  const isOne = code.includes('fromNodeMiddleware')
  const handler = code.replace('export default', 'const handler =').replace("'h3'", isOne ? "'h3-1'" : "'h3'")
  const serve = isOne
    ? `import { createApp, toNodeListener } from 'h3-1'
       createServer(toNodeListener(createApp().use(handler))).listen(3000)`
    : `import { H3, toNodeHandler } from 'h3'
       createServer(toNodeHandler(new H3().all('/**', handler))).listen(3000)`
  const host = hostOf(name, `import { createServer } from 'node:http'\n${handler}\n${serve}`)
  return { ...host, refusesEscapes: !isOne, passesOn: false }
}

const HOSTS = HOST_EXAMPLES.flatMap(({ heading, code, line }) => {
  const name = `${heading}, at line ${line}`
  if (heading === 'Nitro and Nuxt') return hostOfRoute(name, code)
  // Next.js stands below, and functions that no server calls are tried elsewhere.
  if (!isProgram(code) || heading === 'Next.js') return []
  if (code.includes('fromNodeMiddleware')) return hostOf(`${name}, with h3 1`, code.replace("'h3'", "'h3-1'"))
  const host = hostOf(name, code)
  if (!code.includes("'express'")) return host
  return [host, hostOf(`${name}, with Express 4`, code.replace("'express'", "'express-4'"))]
})

for (const host of HOSTS) {
  test(host.name, { skip: skipExample(host.code), timeout: 120_000 }, (t) => tryHost(t, host))
}

const ofNext = HOST_EXAMPLES.filter(({ heading }) => heading === 'Next.js').map(({ code }) => code)
const nextServer = ofNext.find(isProgram)!

test('Next.js', { skip: skipExample(nextServer), timeout: 300_000 }, async (t) => {
  const page = "export default function Page() { return 'Welcome.' }"
  const routes = ofNext.filter((code) => !isProgram(code))
  const files = routes.map((code) => [/^\/\/ (.*)\n/.exec(code)![1]!, withOwners(code)] as const)
  const project = await createProject(t, { ...Object.fromEntries(files), 'pages/index.js': page })
  await runScript('next build', project, { NEXT_TELEMETRY_DISABLED: '1' })

  const inNext = { ...hostOf('Next.js', nextServer), passesOn: undefined }
  await t.test('in a server of its own', (t) => tryHost(t, inNext, project))
  for (const [path] of files) {
    // The service of the server itself is elsewhere.
    const code = nextServer.replace('/api', '/elsewhere')
    const isFetch = path.startsWith('app/')
    const route = { ...inNext, code, prefix: isFetch ? '/rest' : '/api', refusesEscapes: true, isFetch }
    await t.test(path, (t) => tryHost(t, route, project))
  }
})

/** @param project where the host is built already, if it takes that */
async function tryHost(t: TestContext, host: Host, project?: string) {
  const { prefix, passesOn, isFetch } = host
  // Vite has a list of hosts of its own.
  const code = withOwners(host.code).replace('cors: false', 'cors: false, allowedHosts: true')
  const client = connectTo(protocolOf(host.code), (await startExample(t, code, project)).port)
  t.after(() => client.close())

  const isHttp1 = protocolOf(host.code) !== 'h2'

  /** Without what a host adds to each answer, or takes away. */
  function ownOf({ status, headers, body }: Reply): Reply {
    const others = ['server', 'vary', 'x-powered-by', ...(isFetch ? ['content-length'] : [])]
    const own = Object.entries(headers).filter(([name]) => !others.includes(name))
    return { status, headers: Object.fromEntries(own), body }
  }

  for (const [group, rows] of Object.entries(CONTRACT_CASES)) {
    const answered = rows.filter((row) => isAnswered(row, host))
    await t.test(`answers as the contract says: ${group}`, () => {
      return checkCases(client, group, answered, {
        prefix,
        isHttp1: isHttp1 && !isFetch,
        expected: (row) => ownOf(withLength(host.code.includes('basePath') ? under(prefix, row) : row)),
        received: ownOf,
      })
    })
  }

  await t.test('answers itself what is no resource of it', { skip: !passesOn && 'has no answer' }, async () => {
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
      body: MANY,
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
function isAnswered(row: ContractCase, { passesOn, refusesEscapes }: Host) {
  if (refusesEscapes && /malformed escape|escape that is no/.test(row.name)) return false
  return passesOn === false || !isNoResource(row)
}

/** A case of a service that knows the prefix of its paths: it says where the plants are. */
function under(prefix: string, row: ContractCase): ContractCase {
  return { ...row, body: row.body.replace('The plants are at ', `The plants are at ${prefix}`) }
}
