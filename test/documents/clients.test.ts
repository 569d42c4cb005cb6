import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { memoryStore, StoreUnavailableError, type NewPlant, type Store } from '../../src/index.ts'
import { delegatingStore } from '../support/database/delegating-store.ts'
import { codeOf } from '../support/package/documents.ts'
import { createProject, runScript } from '../support/package/packed.ts'
import { skipWithoutPeers } from '../support/package/peers.ts'
import { startProgram, TOKEN } from '../support/program/program.ts'
import { withoutCommand } from '../support/requirements.ts'
import { createService, keptIds, portOf, serve, servePlants } from '../support/wire/service.ts'
import { temporaryDirectory } from '../support/temporary-file.ts'

const hasRawJson = 'rawJSON' in JSON
const needsRawJson = !hasRawJson && 'this Node has no JSON.rawJSON'

function code(heading: string, language: string, n = 0): string {
  return codeOf('docs/clients.md', language, heading, n)
}

/** With JSON.rawJSON, and without. */
const [RAW_JSON, TEXT_JSON] = [code('Ids beyond 2^53', 'js'), code('Ids beyond 2^53', 'js', 1)]
const JSON_MODULE = hasRawJson ? RAW_JSON : TEXT_JSON

/** Imports a module of the document from a folder of its own, beside which json.mjs is. */
async function load<Module>(t: TestContext, text: string): Promise<Module> {
  const directory = temporaryDirectory(t)
  await writeFile(join(directory, 'json.mjs'), JSON_MODULE)
  await writeFile(join(directory, 'main.mjs'), text)
  return (await import(pathToFileURL(join(directory, 'main.mjs')).href)) as Module
}

type JsonModule = Readonly<{ toJson: (value: unknown) => string; fromJson: (text: string) => unknown }>

suite('ids beyond 2^53', () => {
  const plant = { id: 2n ** 53n + 1n, name: 'Fern', tag: '"' }
  const text = '{"id":9007199254740993,"name":"Fern","tag":"\\""}'

  test('are written and read with JSON.rawJSON', { skip: needsRawJson }, async (t) => {
    const { toJson, fromJson } = await load<JsonModule>(t, RAW_JSON)
    assert.equal(toJson(plant), text)
    assert.deepEqual(fromJson(toJson([plant])), [plant])
  })

  test('are written and read as text without it', async (t) => {
    const { toJson, fromJson } = await load<JsonModule>(t, TEXT_JSON)
    assert.equal(toJson(plant), text)
    assert.throws(() => toJson({ ...plant, id: '1,"id":2' }), SyntaxError)
    const sly = [
      { id: -1n, name: '{"id":1' },
      { id: 2n, name: '{', tag: '"id":1,' },
    ]
    assert.deepEqual(fromJson(`[${sly.map(toJson).join()}]`), sly)
  })
})

interface PlantClient {
  create(plant: NewPlant): Promise<void>
  delete(id: bigint): Promise<void>
  list(): AsyncIterable<NewPlant>
}

type ClientModule = Readonly<Record<'createClient', (url: string, token: string) => PlantClient>>

suite('the client with fetch', () => {
  async function connect(t: TestContext, server: Server, token = 'ada'): Promise<PlantClient> {
    const text = code('With fetch', 'js').replace('seconds * 1000', 'seconds')
    const { createClient } = await load<ClientModule>(t, text)
    return createClient(`http://127.0.0.1:${portOf(server)}/`, token)
  }

  test('keeps ids exact and follows a list', async (t) => {
    const store = memoryStore()
    const client = await connect(t, await servePlants(t, { store }))
    const ids = Array.from({ length: 250 }, (_, i) => 2n ** 53n + BigInt(i))
    for (const id of ids) await client.create({ id, name: `Plant ${id}` })
    await client.delete(ids[0]!)

    const kept = ids.slice(1).map((id) => ({ id, name: `Plant ${id}` }))
    for await (const plant of client.list()) assert.deepEqual(plant, kept.shift())
    assert.deepEqual(kept, [])
  })

  /** What goes wrong with a request, beside what the service does with it. */
  type Fault = 'unavailable' | 'unknown' | 'lost' | 'refused by a proxy' | 'too slow'

  /** Starts a service that is subject to these faults, one for each request until there are none left. */
  async function startFaulty(t: TestContext, store: Store, faults: Fault[]) {
    function faulty(operate: () => unknown): boolean {
      const fault = faults.shift()
      if (fault === 'unavailable') throw new StoreUnavailableError('gone')
      const isDone = operate() as boolean
      if (fault === 'unknown') throw new StoreUnavailableError('lost', { isOutcomeUnknown: true })
      if (fault === 'lost') server.closeAllConnections()
      return isDone
    }
    const plants = createService({
      store: delegatingStore(store, {
        create: (owner, plant) => faulty(() => store.create(owner, plant)),
        delete: (owner, id) => faulty(() => store.delete(owner, id)),
      }),
    })
    const server: Server = await serve(t, (request, response) => {
      const status = { 'refused by a proxy': 429, 'too slow': 408 }[faults[0] as string]
      if (status === undefined) return plants(request, response)
      faults.shift()
      response.writeHead(status).end('<html>')
    })
    return server
  }

  const fern = { id: 1n, name: 'Fern' }

  for (const faults of [['unknown'], ['refused by a proxy', 'too slow', 'lost', 'unavailable']] as const) {
    test(`creates and deletes what was ${faults.join(', then ')}`, async (t) => {
      const store = memoryStore()
      await (await connect(t, await startFaulty(t, store, [...faults]))).create(fern)
      assert.deepEqual(await keptIds(store), [1n])
      await (await connect(t, await startFaulty(t, store, [...faults]))).delete(1n)
      assert.deepEqual(await keptIds(store), [])
    })
  }

  for (const faults of [[], ['unavailable'], ['refused by a proxy'], ['too slow']] as const) {
    test(`does not take the plant of others for its own: ${faults.join() || 'at once'}`, async (t) => {
      const store = memoryStore()
      void store.create('ada', { id: 1n, name: 'Moss' })
      const client = await connect(t, await startFaulty(t, store, [...faults]))
      await assert.rejects(client.create(fern), { error: 40900 })
      await assert.rejects(client.delete(2n), { error: 40401 })
    })
  }

  test('takes no number that may have been rounded', async (t) => {
    const store = memoryStore()
    const client = await connect(t, await servePlants(t, { store }))
    const id = Number('9007199254740993') as unknown as bigint
    await assert.rejects(client.create({ id, name: 'Fern' }), RangeError)
    await assert.rejects(client.delete(id), RangeError)
    assert.deepEqual(await keptIds(store), [])
  })

  test('does not repeat a mistake of its programmer, and says why it had no response', async (t) => {
    const server = await servePlants(t)
    await assert.rejects((await connect(t, server, 'a\nb')).create(fern), TypeError)
    const client = await connect(t, server)
    server.close()
    const isSaid = ({ message, cause }: Error) => message === 'no response' && cause instanceof TypeError
    await assert.rejects(client.create(fern), isSaid)
  })

  test('gives up at last', async (t) => {
    const faults: Fault[] = Array<Fault>(6).fill('unavailable')
    const client = await connect(t, await startFaulty(t, memoryStore(), faults))
    await assert.rejects(client.create(fern), { error: 50300 })
    assert.equal(faults.length, 1)
  })
})

test('curl creates plants and follows a list', { skip: withoutCommand('curl') }, async (t) => {
  const env = { URL: `http://127.0.0.1:${portOf(await servePlants(t))}`, TOKEN: randomUUID() }
  const printed = await runScript(code('With curl', 'sh') + code('With curl', 'sh', 1), temporaryDirectory(t), env)
  assert.equal(printed, '{"name":"Fern"}{"name":"Moss"}[{"name":"Fern"}]\n[{"name":"Moss"}]\n')
})

suite('a client in Java', { skip: withoutCommand('java') }, () => {
  const made = code('With Java', 'java')
  for (const [name, create, connections] of [
    ['reuses its connection with the version that the document sets', made, 1],
    ['opens a connection for each request without it', made.replace(/\.version\([\w.]*\)/, ''), 3],
  ] as const) {
    test(name, async (t) => {
      const server = await servePlants(t)
      let opened = 0
      server.on('connection', () => opened++)
      const file = join(temporaryDirectory(t), 'Main.java')
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
      assert.equal(await runScript(`java ${file} http://127.0.0.1:${portOf(server)}/plants`), '[][][]')
      assert.equal(opened, connections)
    })
  }
})

/** The file of the configuration of each generator, the command, and whether `test/peers` has it. */
const GENERATORS = [
  ['openapi-typescript', 'generate.mjs', 'node generate.mjs', false],
  ['Hey API', 'openapi-ts.config.mjs', 'openapi-ts', true],
  ['orval', 'orval.config.mjs', 'orval', true],
] as const

const COMPILE =
  'tsc --ignoreConfig --strict --noEmit --allowJs --allowImportingTsExtensions --skipLibCheck ' +
  '--target es2023 --module preserve --types node main.ts'

for (const [name, config, command, isPeer] of GENERATORS) {
  const skip = (isPeer && (skipWithoutPeers() || needsRawJson)) || withoutCommand('curl')
  test(`a client by ${name} has bigints for ids, and sends them exactly`, { skip, timeout: 120_000 }, async (t) => {
    const { url } = await startProgram(t)
    const folder = await createProject(t, {
      'package.json': '{"type":"module"}',
      [config]: code(name, 'js'),
      'json.mjs': JSON_MODULE,
      'main.ts': code(name, 'ts'),
    })
    const script = `${code('With a typed client', 'sh')} ${command} >&2 && ${COMPILE} && node --import tsx main.ts`
    const printed = await runScript(script, folder, { URL: url, TOKEN })
    assert.equal(printed, "{ name: 'Fern' } [ { id: 9007199254740993n, name: 'Fern' } ] 204 []\n")
  })
}
