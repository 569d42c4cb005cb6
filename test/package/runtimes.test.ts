import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { testCases } from '../contract/check-cases.ts'
import { startChild, type CleanupScope } from '../support/child-process.ts'
import { connectClient } from '../support/wire/client.ts'
import { readDocument } from '../support/package/documents.ts'
import { findFreePort } from '../support/wire/find-free-port.ts'
import { FRAMEWORK_EXAMPLES, MANY_PLANTS_JSON, addTestOwners } from '../support/package/examples.ts'
import { openSqlite, skipWithoutSqlite } from '../support/database/sqlite-file.ts'
import { createProject, ENV_WITHOUT_COVERAGE } from '../support/package/packed-package.ts'
import { skipWithoutPeers } from '../support/package/extra-packages.ts'
import { createTempDirectory } from '../support/temp-files.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { waitUntil } from '../support/wait-until.ts'
import { del, get, post, sendToPort } from '../support/wire/service.ts'

const { text: documentText } = readDocument('docs/frameworks.md')

/** Returns the commands in a row of the document's table, by runtime. */
function findCommands(what: string): Record<string, string> {
  const [, bun, deno] = new RegExp(`^\\| ${what} \\| \`(.*)\` \\| \`(.*)\` \\|$`, 'm').exec(documentText)!
  return { Bun: bun!, Deno: deno! }
}

const SERVICE_COMMANDS = findCommands('your own server')
const PROGRAM_COMMANDS = findCommands('the standalone server, with SQLite')

/** The folder of the real deno executable: npm's wrapper script doesn't forward signals. */
const DENO_DIRECTORY = fileURLToPath(new URL('../peers/node_modules/deno', import.meta.url))

/** Runs a command in a project. The process is killed when the scope ends. */
function spawnInProject(t: CleanupScope, project: string, command: string, env: object): ChildProcess {
  const [name, ...args] = command.replace('node_modules', '../node_modules').split(' ')
  const own = { PATH: `${DENO_DIRECTORY}:${ENV_WITHOUT_COVERAGE['PATH']}`, HOME: project }
  // The output is ignored, because the server writes a log.
  return startChild(t, name!, args, {
    cwd: project,
    env: { ...ENV_WITHOUT_COVERAGE, ...own, ...env },
    stdio: 'ignore',
  })
}

/** Starts a command in a project and waits until it responds to requests. */
async function startInProject(
  t: CleanupScope,
  project: string,
  command: string,
  port: number,
  env = {},
): Promise<ChildProcess> {
  const child = spawnInProject(t, project, command, { PORT: String(port), ...env })
  await waitUntil(() => {
    assert.equal(child.exitCode, null, `${command} exited`)
    // A runtime that is still starting may accept a request and never respond.
    const response = sendToPort(port, { method: 'OPTIONS', path: '/plants', fields: [] })
    const hasResponded = response.then(({ status }) => status > 0).catch(() => false)
    return Promise.race([hasResponded, setTimeout(1000, false, { ref: false })])
  })
  return child
}

for (const name of Object.keys(SERVICE_COMMANDS)) {
  suite(`in ${name}`, { skip: skipWithoutPeers, timeout: 60_000 }, () => {
    test('a service', async (t) => {
      const port = await findFreePort()
      const main = addTestOwners(FRAMEWORK_EXAMPLES[0]!.code).replace('3000', `${port}, '127.0.0.1'`)
      await startInProject(t, await createProject(t, { 'main.mjs': main }), SERVICE_COMMANDS[name]!, port)

      await t.test(`responds as expected to every contract case (${name})`, async (t) => {
        const client = connectClient('http', port)
        t.after(() => client.close())
        await testCases(t, { name, client, isHttp1: true })
        const list = await client.send(get('many'))
        assert.deepEqual([list.status, list.body], [200, MANY_PLANTS_JSON])
      })

      await t.test(`rejects an upload before its body has ended, and closes the connection (${name})`, async (t) => {
        const client = await RawConnection.open(port)
        t.after(() => client.socket.destroy())
        client.send('POST /plants HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n')
        const [answer] = await client.readResponses(1)
        assert.deepEqual([answer!.status, answer!.headers.get('connection')], [401, 'close'])
      })

      await t.test(`responds to pipelined requests in order (${name})`, async (t) => {
        const client = await RawConnection.open(port)
        t.after(() => client.socket.destroy())
        const plant = '{"id":1,"name":"Fern"}'
        const head = 'HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer pipelined\r\n'
        const body = `Content-Type: application/json\r\nContent-Length: ${plant.length}\r\n\r\n${plant}`
        client.send(`POST /plants ${head}${body}GET /plants ${head}\r\nDELETE /plants/1 ${head}\r\n`)
        const responses = (await client.readResponses(3)).map(({ status, body }) => `${status} ${body}`)
        assert.deepEqual(responses, ['200 {"name":"Fern"}', '200 [{"name":"Fern"}]', '204 '])
      })
    })

    test(`the standalone server keeps plants in SQLite across restarts (${name})`, async (t) => {
      const project = await createProject(t)
      const env = { PLANT_STORE_TOKENS: 'ada:secret', PLANT_STORE_URL: `sqlite:${join(project, 'plants.db')}` }
      const [first, second] = [await findFreePort(), await findFreePort()]
      const child = await startInProject(t, project, PROGRAM_COMMANDS[name]!, first, env)
      assert.equal((await sendToPort(first, post('secret', '{"id":9007199254740993,"name":"Fern"}'))).status, 200)
      child.kill('SIGTERM')
      assert.deepEqual(await once(child, 'exit'), [0, null])

      await startInProject(t, project, PROGRAM_COMMANDS[name]!, second, env)
      assert.equal((await sendToPort(second, get('secret'))).body, '[{"name":"Fern"}]')
      assert.equal((await sendToPort(second, del('secret', 9007199254740993n))).status, 204)
    })

    test(`the standalone server works with an in-memory SQLite database (${name})`, async (t) => {
      const port = await findFreePort()
      const env = { PLANT_STORE_TOKENS: 'ada:secret', PLANT_STORE_URL: 'sqlite::memory:' }
      await startInProject(t, await createProject(t), PROGRAM_COMMANDS[name]!, port, env)
      assert.equal((await sendToPort(port, post('secret', '{"id":1,"name":"Fern"}'))).status, 200)
      assert.equal((await sendToPort(port, get('secret'))).body, '[{"name":"Fern"}]')
    })

    test(`the standalone server listens on a Unix socket (${name})`, async (t) => {
      const HOST = join(createTempDirectory(t), 'socket')
      const [, flag] = /a Unix socket as `HOST` also needs `(.*?)`/.exec(documentText)!
      const command = PROGRAM_COMMANDS[name]!.replace('deno run', `deno run ${flag}`)
      const child = spawnInProject(t, await createProject(t), command, { HOST })
      await waitUntil(() => {
        assert.equal(child.exitCode, null, `${command} exited`)
        return existsSync(HOST)
      })
      const client = await RawConnection.open(HOST)
      t.after(() => client.socket.destroy())
      client.send('GET /livez HTTP/1.1\r\nHost: a\r\n\r\n')
      const [response] = await client.readResponses(1)
      assert.equal(response!.status, 200)
    })

    test(
      `the standalone server responds with 500 if SQLite fails (${name})`,
      { skip: skipWithoutSqlite },
      async (t) => {
        const project = await createProject(t)
        const path = join(project, 'plants.db')
        const env = { PLANT_STORE_TOKENS: 'ada:secret', PLANT_STORE_URL: `sqlite:${path}` }
        const port = await findFreePort()
        await startInProject(t, project, PROGRAM_COMMANDS[name]!, port, env)
        openSqlite(t, path).exec('DROP TABLE plants')
        assert.equal((await sendToPort(port, get('secret'))).status, 500)
      },
    )
  })
}
