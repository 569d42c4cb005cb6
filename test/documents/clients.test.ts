import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { memoryStore, StoreUnavailableError, type NewPlant, type Store } from '../../src/index.ts'
import { overrideStore } from '../support/database/override-store.ts'
import { getCode } from '../support/package/documents.ts'
import { createProject, runScript } from '../support/package/packed-package.ts'
import { skipWithoutPeers } from '../support/package/peers.ts'
import { startProgram, TOKEN } from '../support/program/program.ts'
import { skipWithoutCommand } from '../support/skip-reasons.ts'
import { createService, listStoredIds, getPort, serve, servePlants } from '../support/wire/service.ts'
import { createTempDirectory } from '../support/temp-files.ts'

const hasRawJson = 'rawJSON' in JSON
const skipWithoutRawJson = !hasRawJson && 'this Node has no JSON.rawJSON'

function getClientCode(heading: string, language: string, n = 0): string {
  return getCode('docs/clients.md', language, heading, n)
}

/** The two versions of json.mjs: with and without JSON.rawJSON. */
const [RAW_JSON, TEXT_JSON] = [getClientCode('Ids beyond 2^53', 'js'), getClientCode('Ids beyond 2^53', 'js', 1)]
const JSON_MODULE = hasRawJson ? RAW_JSON : TEXT_JSON

/** Writes a module of the document and json.mjs to a temporary directory, and imports the module. */
async function importModule<Module>(t: TestContext, text: string): Promise<Module> {
  const directory = createTempDirectory(t)
  await writeFile(join(directory, 'json.mjs'), JSON_MODULE)
  await writeFile(join(directory, 'main.mjs'), text)
  return (await import(pathToFileURL(join(directory, 'main.mjs')).href)) as Module
}

type JsonModule = Readonly<{ toJson: (value: unknown) => string; fromJson: (text: string) => unknown }>

suite('the JSON module in docs/clients.md', () => {
  const plant = { id: 2n ** 53n + 1n, name: 'Fern', tag: '"' }
  const text = '{"id":9007199254740993,"name":"Fern","tag":"\\""}'

  test('preserves ids beyond 2^53 with JSON.rawJSON', { skip: skipWithoutRawJson }, async (t) => {
    const { toJson, fromJson } = await importModule<JsonModule>(t, RAW_JSON)
    assert.equal(toJson(plant), text)
    assert.deepEqual(fromJson(toJson([plant])), [plant])
  })

  test('preserves ids beyond 2^53 without JSON.rawJSON', async (t) => {
    const { toJson, fromJson } = await importModule<JsonModule>(t, TEXT_JSON)
    assert.equal(toJson(plant), text)
    assert.throws(() => toJson({ ...plant, id: '1,"id":2' }), SyntaxError)
    const deceptive = [
      { id: -1n, name: '{"id":1' },
      { id: 2n, name: '{', tag: '"id":1,' },
    ]
    assert.deepEqual(fromJson(`[${deceptive.map(toJson).join()}]`), deceptive)
  })
})

test('Python parses and prints ids beyond 2^53 exactly', { skip: skipWithoutCommand('python3') }, async (t) => {
  const store = memoryStore()
  void store.create('ada', { id: 2n ** 53n + 1n, name: 'Fern' })
  const url = `http://127.0.0.1:${getPort(await servePlants(t, { store }))}/plants?include=id`
  const code = `import json, sys, urllib.request
request = urllib.request.Request(sys.argv[1], headers={"Authorization": "Bearer ada"})
print(json.dumps(json.load(urllib.request.urlopen(request))))`
  const printed = '[{"id": 9007199254740993, "name": "Fern"}]\n'
  assert.equal(
    await runScript(
      `python3 -c '${code}' '${url}' | tee list && python3 -m json.tool --compact list`,
      createTempDirectory(t),
    ),
    printed + printed.replaceAll(/(?<=[:,]) /g, ''),
  )
})

interface PlantClient {
  create(plant: NewPlant): Promise<void>
  delete(id: bigint): Promise<void>
  list(): AsyncIterable<NewPlant>
}

type ClientModule = Readonly<Record<'createClient', (url: string, token: string) => PlantClient>>

suite('the fetch client', () => {
  async function connect(t: TestContext, server: Server, token = 'ada'): Promise<PlantClient> {
    const text = getClientCode('With fetch', 'js').replace('seconds * 1000', 'seconds')
    const { createClient } = await importModule<ClientModule>(t, text)
    return createClient(`http://127.0.0.1:${getPort(server)}/`, token)
  }

  test('follows all pages of a list and keeps ids exact', async (t) => {
    const store = memoryStore()
    const client = await connect(t, await servePlants(t, { store }))
    const ids = Array.from({ length: 250 }, (_, i) => 2n ** 53n + BigInt(i))
    for (const id of ids) await client.create({ id, name: `Plant ${id}` })
    await client.delete(ids[0]!)

    const kept = ids.slice(1).map((id) => ({ id, name: `Plant ${id}` }))
    for await (const plant of client.list()) assert.deepEqual(plant, kept.shift())
    assert.deepEqual(kept, [])
  })

  /** A way in which a request fails, even if it has taken effect. */
  type Fault = '50300' | '50301' | 'a lost connection' | '429' | '408'

  /** Starts a service in which one of the given faults occurs for each request, until all have occurred. */
  async function startFaulty(t: TestContext, store: Store, faults: Fault[]) {
    function faulty(operate: () => unknown): boolean {
      const fault = faults.shift()
      if (fault === '50300') throw new StoreUnavailableError('gone')
      const isDone = operate() as boolean
      if (fault === '50301') throw new StoreUnavailableError('lost', { isOutcomeUnknown: true })
      if (fault === 'a lost connection') server.closeAllConnections()
      return isDone
    }
    const plants = createService({
      store: overrideStore(store, {
        create: (owner, plant) => faulty(() => store.create(owner, plant)),
        delete: (owner, id) => faulty(() => store.delete(owner, id)),
      }),
    })
    const server: Server = await serve(t, (request, response) => {
      const [status] = faults
      if (status !== '429' && status !== '408') return plants(request, response)
      faults.shift()
      response.writeHead(Number(status)).end('<html>')
    })
    return server
  }

  const fern = { id: 1n, name: 'Fern' }

  for (const faults of [['50301'], ['429', '408', 'a lost connection', '50300']] as const) {
    test(`retries creates and deletes after ${faults.join(', then ')}`, async (t) => {
      const store = memoryStore()
      await (await connect(t, await startFaulty(t, store, [...faults]))).create(fern)
      assert.deepEqual(await listStoredIds(store), [1n])
      await (await connect(t, await startFaulty(t, store, [...faults]))).delete(1n)
      assert.deepEqual(await listStoredIds(store), [])
    })
  }

  for (const faults of [[], ['50300'], ['429'], ['408']] as const) {
    test(`reports an id in use with 40900 and a missing plant with 40401 after ${faults.join() || 'no fault'}`, async (t) => {
      const store = memoryStore()
      void store.create('ada', { id: 1n, name: 'Moss' })
      const client = await connect(t, await startFaulty(t, store, [...faults]))
      await assert.rejects(client.create(fern), { error: 40900 })
      await assert.rejects(client.delete(2n), { error: 40401 })
    })
  }

  test('throws a RangeError for an id that is a number instead of a bigint', async (t) => {
    const store = memoryStore()
    const client = await connect(t, await servePlants(t, { store }))
    const id = Number('9007199254740993') as unknown as bigint
    await assert.rejects(client.create({ id, name: 'Fern' }), RangeError)
    await assert.rejects(client.delete(id), RangeError)
    assert.deepEqual(await listStoredIds(store), [])
  })

  test('throws a TypeError for an invalid token without retrying', async (t) => {
    const client = await connect(t, await servePlants(t), 'a\nb')
    await assert.rejects(client.create(fern), TypeError)
  })

  test('reports the fetch error as the cause if the server is unreachable', async (t) => {
    const server = await servePlants(t)
    const client = await connect(t, server)
    server.close()
    const isNoResponse = ({ message, cause }: Error) => message === 'no response' && cause instanceof TypeError
    await assert.rejects(client.create(fern), isNoResponse)
  })

  test('stops retrying after five attempts', async (t) => {
    const faults: Fault[] = Array<Fault>(6).fill('50300')
    const client = await connect(t, await startFaulty(t, memoryStore(), faults))
    await assert.rejects(client.create(fern), { error: 50300 })
    assert.equal(faults.length, 1)
  })
})

test(
  'the curl commands create plants and read all pages of a list',
  { skip: skipWithoutCommand('curl') },
  async (t) => {
    const env = { URL: `http://127.0.0.1:${getPort(await servePlants(t))}`, TOKEN: randomUUID() }
    const printed = await runScript(
      getClientCode('With curl', 'sh') + getClientCode('With curl', 'sh', 1),
      createTempDirectory(t),
      env,
    )
    assert.equal(printed, '{"name":"Fern"}{"name":"Moss"}[{"name":"Fern"}]\n[{"name":"Moss"}]\n')
  },
)

suite(
  'the curl commands protect the token from other users (insecure permissions)',
  { skip: skipWithoutCommand('curl') },
  () => {
    for (const [what, before] of [
      ['in a new token file', 'umask 000'],
      ['when they replace a token file that others can read', 'umask 022; echo old > token'],
    ] as const) {
      test(what, async (t) => {
        const folder = createTempDirectory(t)
        const env = { URL: `http://127.0.0.1:${getPort(await servePlants(t))}`, TOKEN: randomUUID() }
        await runScript(`${before}\n${getClientCode('With curl', 'sh')}`, folder, env)
        assert.equal(statSync(join(folder, 'token')).mode & 0o777, 0o600)
      })
    }
  },
)

suite('a Java client', { skip: skipWithoutCommand('java') }, () => {
  const example = getClientCode('With Java', 'java')
  for (const [name, create, connections] of [
    ['reuses its connection if its version is set to HTTP/1.1', example, 1],
    ['opens a connection for each request by default', example.replace(/\.version\([\w.]*\)/, ''), 3],
  ] as const) {
    test(name, async (t) => {
      const server = await servePlants(t)
      let opened = 0
      server.on('connection', () => opened++)
      const file = join(createTempDirectory(t), 'Main.java')
      await writeFile(
        file,
        `import java.net.URI;
         import java.net.http.*;
         class Main {
           public static void main(String[] args) throws Exception {
             ${create}
             for (int i = 0; i < 3; i++) {
               var request = HttpRequest.newBuilder(URI.create(args[0])).header("Authorization", "Bearer ada").build();
               System.out.print(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
             }
           }
         }`,
      )
      assert.equal(await runScript(`java ${file} http://127.0.0.1:${getPort(server)}/plants`), '[][][]')
      assert.equal(opened, connections)
    })
  }
})

/** The generators: heading, configuration file, command, and whether the generator is installed in `test/peers`. */
const GENERATORS = [
  ['openapi-typescript', 'generate.mjs', 'node generate.mjs', false],
  ['Hey API', 'openapi-ts.config.mjs', 'openapi-ts', true],
  ['orval', 'orval.config.mjs', 'orval', true],
] as const

const COMPILE =
  'tsc --ignoreConfig --strict --noEmit --allowJs --allowImportingTsExtensions --skipLibCheck ' +
  '--target es2023 --module preserve --types node main.ts'

for (const [name, config, command, isPeer] of GENERATORS) {
  const skip = (isPeer && (skipWithoutPeers() || skipWithoutRawJson)) || skipWithoutCommand('curl')
  test(`a client generated by ${name} sends and receives bigint ids exactly`, { skip, timeout: 120_000 }, async (t) => {
    const { url } = await startProgram(t)
    const folder = await createProject(t, {
      'package.json': '{"type":"module"}',
      [config]: getClientCode(name, 'js'),
      'json.mjs': JSON_MODULE,
      'main.ts': getClientCode(name, 'ts'),
    })
    const script = `${getClientCode('Generated TypeScript clients', 'sh')} ${command} >&2 && ${COMPILE} && node --import tsx main.ts`
    const printed = await runScript(script, folder, { URL: url, TOKEN })
    assert.equal(printed, "{ name: 'Fern' } [ { id: 9007199254740993n, name: 'Fern' } ] 204 []\n")
  })
}
