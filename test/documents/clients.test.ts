import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { memoryStore } from '../../src/index.ts'
import { getCode, readDocument } from '../support/package/documents.ts'
import { createProject, runScript } from '../support/package/packed-package.ts'
import { skipWithoutPeers } from '../support/package/extra-packages.ts'
import { startProgram, TOKEN } from '../support/program/program.ts'
import { skipWithoutCommand } from '../support/skip-reasons.ts'
import { getPort, servePlants } from '../support/wire/service.ts'
import { createTempDirectory } from '../support/temp-files.ts'

const hasRawJson = 'rawJSON' in JSON
const skipWithoutRawJson = !hasRawJson && 'this Node has no JSON.rawJSON'

function getClientCode(heading: string, language: string, n = 0): string {
  return getCode('docs/clients.md', language, heading, n)
}

const JSON_MODULE = getClientCode('Generated TypeScript clients', 'js')

test('the JavaScript example creates and lists a plant, or prints an error', async (t) => {
  const url = `http://127.0.0.1:${getPort(await servePlants(t))}/`
  const project = await createProject(t, { 'main.mjs': getClientCode('JavaScript', 'js') })
  const printed = await runScript('node main.mjs && node main.mjs', project, { URL: url, TOKEN: 'ada' })
  const page = "[ { id: 9007199254740993n, name: 'Fern' } ] 9007199254740993n\n"
  assert.equal(printed, `${page}409 40900 false\n${page}`)
})

test('the replacer makes JSON of plants', () => {
  const [, code = ''] = /`(JSON\.stringify\(page, .*)`/.exec(readDocument('docs/clients.md').text)!
  const page = [{ id: 2n ** 53n + 1n, name: 'Fern' }]
  assert.equal(runInNewContext(code, { page }), '[{"id":"9007199254740993","name":"Fern"}]')
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

/** The options of orval, as the document states them. */
const ORVAL_OVERRIDE = /orval 8 needs `override: (.*?)`/s.exec(readDocument('docs/clients.md').text)![1]!

const ORVAL_CONFIG = `export default {
  plants: {
    input: 'openapi.json',
    output: { target: 'client.ts', client: 'fetch', baseUrl: process.env['URL'], override: ${ORVAL_OVERRIDE} },
  },
}`

const ORVAL_MAIN = `
  import { createPlant, deletePlant, listPlants } from './client'
  Object.assign(BigInt.prototype, {
    toJSON(this: bigint) {
      return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(String(this))
    },
  })
  const options = { headers: { Authorization: \`Bearer \${process.env['TOKEN']}\` } }
  const id = 9007199254740993n
  const created = await createPlant({ id, name: 'Fern' }, options)
  const listed = await listPlants({ include: 'id', limit: 10, after: id - 1n }, options)
  const deleted = await deletePlant(id, options)
  console.log(created.data, listed.data, deleted.status, (await listPlants({}, options)).data)`

/** The generators: configuration file, its code, the program, and the command. */
const GENERATORS = [
  [
    'openapi-typescript',
    'generate.mjs',
    getClientCode('openapi-typescript', 'js'),
    getClientCode('openapi-typescript', 'ts'),
    'node generate.mjs',
  ],
  ['Hey API', 'openapi-ts.config.mjs', getClientCode('Hey API', 'js'), getClientCode('Hey API', 'ts'), 'openapi-ts'],
  ['orval', 'orval.config.mjs', ORVAL_CONFIG, ORVAL_MAIN, 'orval'],
] as const

const COMPILE =
  'tsc --ignoreConfig --strict --noEmit --allowJs --allowImportingTsExtensions --skipLibCheck ' +
  '--target es2023 --module preserve --types node main.ts'

for (const [name, config, configCode, mainCode, command] of GENERATORS) {
  const skip = skipWithoutPeers || skipWithoutRawJson || skipWithoutCommand('curl')
  test(`a client generated by ${name} sends and receives bigint ids exactly`, { skip, timeout: 120_000 }, async (t) => {
    const { url } = await startProgram(t)
    const folder = await createProject(t, {
      'package.json': '{"type":"module"}',
      [config]: configCode,
      'json.mjs': JSON_MODULE,
      'main.ts': mainCode,
    })
    const script = `${getClientCode('Generated TypeScript clients', 'sh')} ${command} >&2 && ${COMPILE} && node --import tsx main.ts`
    const printed = await runScript(script, folder, { URL: url, TOKEN })
    assert.equal(printed, "{ name: 'Fern' } [ { id: 9007199254740993n, name: 'Fern' } ] 204 []\n")
  })
}
