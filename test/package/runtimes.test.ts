import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { CONTRACT_CASES } from '../contract/cases.ts'
import { checkCases } from '../contract/check-cases.ts'
import { startChild } from '../support/child.ts'
import { connectTo } from '../support/wire/client.ts'
import { readDocument } from '../support/package/documents.ts'
import { freePort } from '../support/wire/free-port.ts'
import { HOST_EXAMPLES, MANY, withOwners } from '../support/package/examples.ts'
import { createProject } from '../support/package/packed.ts'
import { skipWithoutPeers } from '../support/package/peers.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { until } from '../support/until.ts'
import { del, get, post, sendTo } from '../support/wire/service.ts'

const { text } = readDocument('docs/host-examples.md')

/** The commands that the document shows for something, by the name of the runtime. */
function commandsFor(what: string): Readonly<Record<string, string>> {
  const [, bun, deno] = new RegExp(`^\\| ${what} \\| \`(.*)\` \\| \`(.*)\` \\|$`, 'm').exec(text)!
  return { Bun: bun!, Deno: deno! }
}

const SERVICE = commandsFor('a service of yours')
const PROGRAM = commandsFor('the program, with SQLite')

/** Where the programs `bun` and `deno` themselves are: a script in their place would keep signals to itself. */
const PATH = ['deno', '.bin']
  .map((folder) => fileURLToPath(new URL(`../peers/node_modules/${folder}`, import.meta.url)))
  .join(':')

/** A runtime and what it serves, in a folder beside the package. */
interface Served {
  readonly port: number
  readonly child: ChildProcess
}

/** Runs a command in a project until it answers. It ends with the test. */
async function startIn(t: TestContext, project: string, command: string, port: number, env = {}): Promise<Served> {
  const [name, ...args] = command.replace('node_modules', '../node_modules').split(' ')
  const own = {
    PATH: `${PATH}:${process.env['PATH']!}`,
    PORT: String(port),
    HOME: project,
    NODE_V8_COVERAGE: undefined,
  }
  // The program logs what it does.
  const child = startChild(t, name!, args, { cwd: project, env: { ...own, ...env }, stdio: 'ignore' })
  await until(() => {
    assert.equal(child.exitCode, null, `${command} ends`)
    return isAnswered(port)
  })
  return { port, child }
}

/** A runtime that is still starting may take a request and lose it. */
function isAnswered(port: number): Promise<boolean> {
  const answered = sendTo(port, { method: 'OPTIONS', path: '/plants', fields: [] }).then(
    () => true,
    () => false,
  )
  return Promise.race([answered, setTimeout(1000, false, { ref: false })])
}

async function startService(t: TestContext, name: string): Promise<number> {
  const port = await freePort()
  const main = withOwners(HOST_EXAMPLES[0]!.code).replace('3000', `${port}, '127.0.0.1'`)
  const project = await createProject(t, { 'main.mjs': main })
  return (await startIn(t, project, SERVICE[name]!, port)).port
}

for (const name of Object.keys(SERVICE)) {
  suite(`in ${name}`, { skip: skipWithoutPeers(), timeout: 60_000 }, () => {
    test('a service answers as the contract says', async (t) => {
      const client = connectTo('http', await startService(t, name))
      t.after(() => client.close())
      for (const [group, rows] of Object.entries(CONTRACT_CASES)) {
        await checkCases(client, group, rows, { prefix: '', isHttp1: true })
      }
      const list = await client.send(get('many'))
      assert.deepEqual([list.status, list.body], [200, MANY])
    })

    test('a service refuses an upload while it is sent, and closes', async (t) => {
      const client = await RawConnection.open(await startService(t, name))
      t.after(() => client.socket.destroy())
      const answers = client.answers(1)
      client.send('POST /plants HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n')
      const [answer] = await answers
      assert.deepEqual([answer!.status, answer!.headers.get('connection')], [401, 'close'])
    })

    test('a service answers pipelined requests in order', async (t) => {
      const client = await RawConnection.open(await startService(t, name))
      t.after(() => client.socket.destroy())
      const answers = client.answers(3)
      const plant = '{"id":1,"name":"Fern"}'
      const head = 'HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ada\r\n'
      client.send(
        `POST /plants ${head}Content-Type: application/json\r\nContent-Length: ${plant.length}\r\n\r\n${plant}` +
          `GET /plants ${head}\r\nDELETE /plants/1 ${head}\r\n`,
      )
      const bodies = (await answers).map(({ status, body }) => [status, body])
      assert.deepEqual(bodies, [
        [200, '{"name":"Fern"}'],
        [200, '[{"name":"Fern"}]'],
        [204, ''],
      ])
    })

    test('the program keeps plants in SQLite, and ends with status 0', async (t) => {
      const project = await createProject(t)
      const env = { PLANT_STORE_TOKENS: 'ada:secret', PLANT_STORE_URL: `sqlite:${join(project, 'plants.db')}` }
      const first = await startIn(t, project, PROGRAM[name]!, await freePort(), env)
      assert.equal((await sendTo(first.port, post('secret', '{"id":9007199254740993,"name":"Fern"}'))).status, 200)
      first.child.kill('SIGTERM')
      assert.deepEqual(await once(first.child, 'exit'), [0, null])

      const second = await startIn(t, project, PROGRAM[name]!, await freePort(), env)
      assert.equal((await sendTo(second.port, get('secret'))).body, '[{"name":"Fern"}]')
      assert.equal((await sendTo(second.port, del('secret', 9007199254740993n))).status, 204)
    })
  })
}
