import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { CONTRACT_CASES } from '../contract/cases.ts'
import { checkCases } from '../contract/check-cases.ts'
import { startChild, type Scope } from '../support/child.ts'
import { connectTo } from '../support/wire/client.ts'
import { readDocument } from '../support/package/documents.ts'
import { freePort } from '../support/wire/free-port.ts'
import { HOST_EXAMPLES, MANY, withOwners } from '../support/package/examples.ts'
import { open, skip as skipWithoutSqlite } from '../support/database/sqlite-file.ts'
import { createProject, UNCOVERED } from '../support/package/packed.ts'
import { skipWithoutPeers } from '../support/package/peers.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { until } from '../support/until.ts'
import { del, get, post, sendTo } from '../support/wire/service.ts'

const { text } = readDocument('docs/host-examples.md')

/** The commands that the document shows for something, by the name of the runtime. */
function commandsFor(what: string): Record<string, string> {
  const [, bun, deno] = new RegExp(`^\\| ${what} \\| \`(.*)\` \\| \`(.*)\` \\|$`, 'm').exec(text)!
  return { Bun: bun!, Deno: deno! }
}

const SERVICE = commandsFor('a service of yours')
const PROGRAM = commandsFor('the program, with SQLite')

/** Where the program `deno` itself is: the script in its place would keep signals to itself. */
const DENO = fileURLToPath(new URL('../peers/node_modules/deno', import.meta.url))

/** Runs a command in a project until it answers. It ends with the scope. */
async function startIn(t: Scope, project: string, command: string, port: number, env = {}): Promise<ChildProcess> {
  const [name, ...args] = command.replace('node_modules', '../node_modules').split(' ')
  const own = { PATH: `${DENO}:${UNCOVERED['PATH']}`, PORT: String(port), HOME: project }
  // The program logs what it does.
  const child = startChild(t, name!, args, { cwd: project, env: { ...UNCOVERED, ...own, ...env }, stdio: 'ignore' })
  await until(() => {
    assert.equal(child.exitCode, null, `${command} ends`)
    // While it is starting it may take a request and lose it.
    const asked = sendTo(port, { method: 'OPTIONS', path: '/plants', fields: [] })
    const isAnswered = asked.then(({ status }) => status > 0).catch(() => false)
    return Promise.race([isAnswered, setTimeout(1000, false, { ref: false })])
  })
  return child
}

for (const name of Object.keys(SERVICE)) {
  suite(`in ${name}`, { skip: skipWithoutPeers(), timeout: 60_000 }, () => {
    test('a service', async (t) => {
      const port = await freePort()
      const main = withOwners(HOST_EXAMPLES[0]!.code).replace('3000', `${port}, '127.0.0.1'`)
      await startIn(t, await createProject(t, { 'main.mjs': main }), SERVICE[name]!, port)

      await t.test('answers as the contract says', async (t) => {
        const client = connectTo('http', port)
        t.after(() => client.close())
        for (const [group, rows] of Object.entries(CONTRACT_CASES)) {
          await checkCases(client, group, rows, { prefix: '', isHttp1: true })
        }
        const list = await client.send(get('many'))
        assert.deepEqual([list.status, list.body], [200, MANY])
      })

      await t.test('refuses an upload while it is sent, and closes', async (t) => {
        const client = await RawConnection.open(port)
        t.after(() => client.socket.destroy())
        client.send('POST /plants HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n')
        const [answer] = await client.answers(1)
        assert.deepEqual([answer!.status, answer!.headers.get('connection')], [401, 'close'])
      })

      await t.test('answers pipelined requests in order', async (t) => {
        const client = await RawConnection.open(port)
        t.after(() => client.socket.destroy())
        const plant = '{"id":1,"name":"Fern"}'
        const head = 'HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer pipelined\r\n'
        const body = `Content-Type: application/json\r\nContent-Length: ${plant.length}\r\n\r\n${plant}`
        client.send(`POST /plants ${head}${body}GET /plants ${head}\r\nDELETE /plants/1 ${head}\r\n`)
        const answers = (await client.answers(3)).map(({ status, body }) => `${status} ${body}`)
        assert.deepEqual(answers, ['200 {"name":"Fern"}', '200 [{"name":"Fern"}]', '204 '])
      })
    })

    test('the program keeps plants in SQLite, and ends with status 0', async (t) => {
      const project = await createProject(t)
      const env = { PLANT_STORE_TOKENS: 'ada:secret', PLANT_STORE_URL: `sqlite:${join(project, 'plants.db')}` }
      const [first, second] = [await freePort(), await freePort()]
      const child = await startIn(t, project, PROGRAM[name]!, first, env)
      assert.equal((await sendTo(first, post('secret', '{"id":9007199254740993,"name":"Fern"}'))).status, 200)
      child.kill('SIGTERM')
      assert.deepEqual(await once(child, 'exit'), [0, null])

      await startIn(t, project, PROGRAM[name]!, second, env)
      assert.equal((await sendTo(second, get('secret'))).body, '[{"name":"Fern"}]')
      assert.equal((await sendTo(second, del('secret', 9007199254740993n))).status, 204)
    })

    test('the program keeps plants in SQLite in memory', async (t) => {
      const port = await freePort()
      const env = { PLANT_STORE_TOKENS: 'ada:secret', PLANT_STORE_URL: 'sqlite::memory:' }
      await startIn(t, await createProject(t), PROGRAM[name]!, port, env)
      assert.equal((await sendTo(port, post('secret', '{"id":1,"name":"Fern"}'))).status, 200)
      assert.equal((await sendTo(port, get('secret'))).body, '[{"name":"Fern"}]')
    })

    test('the program answers 500 if SQLite fails to read', { skip: skipWithoutSqlite }, async (t) => {
      const project = await createProject(t)
      const path = join(project, 'plants.db')
      const env = { PLANT_STORE_TOKENS: 'ada:secret', PLANT_STORE_URL: `sqlite:${path}` }
      const port = await freePort()
      await startIn(t, project, PROGRAM[name]!, port, env)
      open(t, path).exec('DROP TABLE plants')
      assert.equal((await sendTo(port, get('secret'))).status, 500)
    })
  })
}
