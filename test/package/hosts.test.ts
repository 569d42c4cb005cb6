import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { after, before, suite, test } from 'node:test'
import { promisify } from 'node:util'
import { OwnScope, type Scope } from '../support/child.ts'
import { CONTRACT_CASES, type ContractCase } from '../contract/cases.ts'
import { checkCases, type Reply } from '../contract/check-cases.ts'
import { connectTo, type Client, type Protocol } from '../support/wire/client.ts'
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
import { createProject, UNCOVERED } from '../support/package/packed.ts'
import { requirePeer } from '../support/package/peers.ts'
import { get, post } from '../support/wire/service.ts'

const run = promisify(execFile)

/** How a host is tried. */
interface Host {
  readonly name: string
  readonly skip: string | false
  readonly protocol: Protocol
  readonly prefix: string
  /** Whether the host itself refuses a path with a malformed escape. */
  readonly refusesEscapes: boolean
  /** Whether the requests that the service gets are made of those of `fetch`. */
  readonly isFetch: boolean
  /** Starts it; gives the port. */
  readonly start: (t: Scope) => Promise<number>
}

function hostOf(name: string, code: string, start = startAlone): Host {
  return {
    name,
    skip: skipExample(code),
    protocol: protocolOf(code),
    prefix: prefixOf(code),
    refusesEscapes: code.includes('Fastify') && !code.includes('frameworkErrors'),
    isFetch: false,
    start: (t) => start(t, code),
  }
}

async function startAlone(t: Scope, code: string): Promise<number> {
  // Vite has a list of hosts of its own.
  return (await startExample(t, withOwners(code).replace('cors: false', 'cors: false, allowedHosts: true'))).port
}

/** Serves a handler of h3 that the document shows as a file of a route. */
function hostOfRoute(name: string, code: string): Host {
  const isOne = code.includes('fromNodeMiddleware')
  const handler = code.replace('export default', 'const handler =').replace("'h3'", isOne ? "'h3-1'" : "'h3'")
  const serve = isOne
    ? `import { createApp, toNodeListener } from 'h3-1'
       createServer(toNodeListener(createApp().use(handler))).listen(3000)`
    : `import { H3, toNodeHandler } from 'h3'
       createServer(toNodeHandler(new H3().all('/**', handler))).listen(3000)`
  const host = hostOf(name, `import { createServer } from 'node:http'\n${handler}\n${serve}`)
  return { ...host, refusesEscapes: !isOne }
}

/** The files of an application of Next.js that has the routes which the document shows. */
const NEXT_FILES = HOST_EXAMPLES.filter(({ heading, code }) => heading === 'Next.js' && !isProgram(code)).map(
  ({ code }) => [/^\/\/ (.*)\n/.exec(code)![1]!, withOwners(code)] as const,
)

const HOSTS = HOST_EXAMPLES.flatMap(({ heading, code, line }) => {
  const name = `${heading}, at line ${line}`
  if (heading === 'Nitro and Nuxt') return hostOfRoute(name, code)
  // Routes of Next.js stand below, and functions that no server calls are tried elsewhere.
  if (!isProgram(code)) return []
  if (heading === 'Next.js') return [hostOf(name, code, startInNext), ...routesOfNext(code)]
  if (code.includes('fromNodeMiddleware')) return hostOf(`${name}, with h3 1`, code.replace("'h3'", "'h3-1'"))
  const host = hostOf(name, code)
  if (!code.includes("'express'")) return host
  return [host, hostOf(`${name}, with Express 4`, code.replace("'express'", "'express-4'"))]
})

/** The routes, in a server whose own service is elsewhere. */
function routesOfNext(code: string): Host[] {
  return NEXT_FILES.map(([path]) => {
    const elsewhere = hostOf(`Next.js, ${path}`, code.replace('/api', '/elsewhere'), startInNext)
    const isFetch = path.startsWith('app/')
    return { ...elsewhere, prefix: isFetch ? '/rest' : '/api', refusesEscapes: true, isFetch }
  })
}

let nextProject: Promise<string> | undefined
const ofAll = new OwnScope()
after(() => ofAll.end())

/** Starts a server of Next.js in a project that is built once. */
async function startInNext(t: Scope, code: string): Promise<number> {
  const project = await (nextProject ??= buildNext())
  return (await startExample(t, withOwners(code), project)).port
}

async function buildNext(): Promise<string> {
  const page = "export default function Page() { return 'Welcome.' }"
  const project = await createProject(ofAll, { ...Object.fromEntries(NEXT_FILES), 'pages/index.js': page })
  const command = [requirePeer.resolve('next/dist/bin/next'), 'build']
  await run(process.execPath, command, { cwd: project, env: { ...UNCOVERED, NEXT_TELEMETRY_DISABLED: '1' } })
  return project
}

for (const { name, skip, protocol, prefix, refusesEscapes, isFetch, start } of HOSTS) {
  suite(name, { skip, timeout: 120_000 }, () => {
    const scope = new OwnScope()
    let client: Client
    before(async () => {
      client = connectTo(protocol, await start(scope))
      scope.after(() => client.close())
    })
    after(() => scope.end())

    const isHttp1 = protocol.startsWith('http')
    for (const [group, rows] of Object.entries(CONTRACT_CASES)) {
      test(`answers as the contract says: ${group}`, () => {
        const answered = rows.filter((row) => isAnswered(row, refusesEscapes))
        return checkCases(client, group, answered, {
          prefix,
          isHttp1: isHttp1 && !isFetch,
          expected: (row) => expected(row, isFetch),
          received: withoutAdded,
        })
      })
    }

    if (name.startsWith('srvx') || name.startsWith('Nitro')) {
      test('answers a path that is not its own', async () => {
        const { status, body } = await client.send(get('ada', '/other'))
        assert.deepEqual([status, (JSON.parse(body) as { error: number }).error], [404, 40400])
      })
    }

    test('sends a list of 5,000 plants whole', async () => {
      const request = get('many', `${prefix}/plants`)
      const answer = withoutAdded(await client.send(request))
      assert.deepEqual(answer, { status: 200, headers: { 'content-type': 'application/json' }, body: MANY })
    })

    test(
      'refuses an upload that is too large while it is sent',
      { skip: !isHttp1 && 'is sent in HTTP/1' },
      async () => {
        const request = post('ada', '', ['Transfer-Encoding', 'chunked'])
        const upload = client.open({ ...request, path: `${prefix}/plants`, body: undefined })
        upload.on('error', () => undefined).write('a'.repeat(70_000))
        const [{ statusCode, headers }] = (await once(upload, 'response')) as [IncomingMessage]
        upload.end()
        assert.deepEqual([statusCode, headers.connection], [413, 'close'])
      },
    )
  })
}

/** Whether the service answers a row, and not the host. */
function isAnswered({ name, body }: ContractCase, refusesEscapes: boolean): boolean {
  return !body.startsWith('{"error":40400') && !(refusesEscapes && /malformed escape|escape that is no/.test(name))
}

function expected({ status, headers, body }: ContractCase, isFetch: boolean): Reply {
  const length = { 'content-length': status === 204 || isFetch ? undefined : String(Buffer.byteLength(body)) }
  const all = isFetch ? { ...headers, ...length } : { ...length, ...headers }
  return { status, headers: JSON.parse(JSON.stringify(all)) as Reply['headers'], body }
}

/** What a host adds to each answer. */
const ADDED = new Set(['server', 'vary', 'x-powered-by'])

function withoutAdded({ status, headers, body }: Reply): Reply {
  const own = Object.entries(headers).filter(([name]) => !ADDED.has(name))
  return { status, headers: Object.fromEntries(own), body }
}
