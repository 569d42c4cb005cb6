/** Runs the generated clients and the Java client of docs/clients.md. */
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { createPlantStore, openapi } from '../../src/index.ts'
import { getCode, readDocument } from '../support/documents.ts'
import { skipWithoutPeers } from '../support/extra-packages.ts'
import { createProject, runScript } from '../support/packed-package.ts'
import { skipBeforeNode, skipWithoutCommand } from '../support/skip-reasons.ts'
import { createTempFile } from '../support/temp-files.ts'
import { getPort, serve, servePlants } from '../support/service.ts'

const getClientCode = (heading: string, language: string): string => getCode('docs/clients.md', language, heading)

const JAVA_MAIN = `
  import java.net.URI;
  import java.net.http.*;
  class Main {
    public static void main(String[] args) throws Exception {
      ${getClientCode('With Java', 'java')}
      for (int i = 0; i < 3; i++) {
        var request = HttpRequest.newBuilder(URI.create(args[0])).header("Authorization", "Bearer ada").build();
        System.out.print(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
      }
    }
  }`

test('the Java client reuses its connection', { skip: skipWithoutCommand('java') }, async (t) => {
  const server = await servePlants(t)
  let connections = 0
  server.on('connection', () => connections++)
  const file = createTempFile(t, JAVA_MAIN)
  assert.equal(await runScript(`java --source 17 ${file} http://127.0.0.1:${getPort(server)}/plants`), '[][][]')
  assert.equal(connections, 1)
})

/** The options of orval, as the document states them. */
const [, override] = /orval 8 needs `override: (.*?)`/s.exec(readDocument('docs/clients.md').text)!

const ORVAL_CONFIG = `export default {
  plants: {
    input: 'openapi.json',
    output: { target: 'client.ts', client: 'fetch', baseUrl: process.env['URL'], override: ${override!} },
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

/** The name, the configuration file, its code, the program, and the command of each generator. */
const GENERATORS = (
  [
    ['openapi-typescript', 'generate.mjs', 'node generate.mjs'],
    ['Hey API', 'openapi-ts.config.mjs', 'openapi-ts'],
  ] as const
).map(([name, file, command]) => [name, file, getClientCode(name, 'js'), getClientCode(name, 'ts'), command] as const)

const COMPILE =
  'tsc --ignoreConfig --strict --noEmit --allowJs --allowImportingTsExtensions --skipLibCheck ' +
  '--target es2023 --module preserve --types node main.ts'

suite('generated clients', { skip: skipWithoutPeers || skipBeforeNode(22) || skipWithoutCommand('curl') }, () => {
  for (const [name, file, config, main, command] of [
    ...GENERATORS,
    ['orval', 'orval.config.mjs', ORVAL_CONFIG, ORVAL_MAIN, 'orval'] as const,
  ]) {
    test(`${name} sends and receives bigint ids exactly`, { timeout: 120_000 }, async (t) => {
      const plants = createPlantStore({ tokens: { secret: 'ada' } })
      const server = await serve(t, (request, response) =>
        plants(request, response, () => response.end(JSON.stringify(openapi))),
      )
      const project = await createProject(t, {
        'package.json': '{"type":"module"}',
        [file]: config,
        'json.mjs': getClientCode('Generated TypeScript clients', 'js'),
        'main.ts': main,
      })
      const download = getClientCode('Generated TypeScript clients', 'sh')
      const script = `${download} ${command} >&2 && ${COMPILE} && node --import tsx main.ts`
      const env = { URL: `http://127.0.0.1:${getPort(server)}`, TOKEN: 'secret' }
      const printed = await runScript(script, project, env)
      assert.equal(printed, "{ name: 'Fern' } [ { id: 9007199254740993n, name: 'Fern' } ] 204 []\n")
    })
  }
})
