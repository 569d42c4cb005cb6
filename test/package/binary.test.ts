import assert from 'node:assert/strict'
import { spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, suite, test, type TestContext } from 'node:test'
import { CONTRACT_CASES } from '../contract/contract-cases.ts'
import { testCases, getCaseToken, type ComparedResponse } from '../contract/check-cases.ts'
import { startChild, waitForOutput } from '../support/child-process.ts'
import { packPackage, runScript } from '../support/package/packed-package.ts'
import { skipWithoutChromium, openAsAda } from '../support/page/web-ui-page.ts'
import { GENERATED_REQUEST_ID, TOKEN } from '../support/program/program.ts'
import { createTempDirectory } from '../support/temp-files.ts'
import { connectClient } from '../support/wire/client.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { del, get, post, sendToPort } from '../support/wire/service.ts'
import { skipBeforeNode } from '../support/skip-reasons.ts'

const skip = skipBeforeNode(26)

suite('the single-file executable', { skip }, () => {
  let binary: string
  let source: string
  let buildOutput: string
  before(async () => {
    const { folder } = await packPackage()
    binary = join(folder, 'plant-store')
    source = join(folder, 'node_modules/plant-store/dist/server.js')
    buildOutput = await runScript(`node src/build/binary.js '${source}' '${binary}'`)
  })

  /** Starts the executable without Node in the PATH. */
  async function start(
    t: TestContext,
    cwd = createTempDirectory(t),
    settings: NodeJS.ProcessEnv = { PLANT_STORE_TOKENS: `ada:${TOKEN}` },
    [command, ...args]: readonly string[] = [binary],
  ): Promise<[port: number, child: ChildProcess]> {
    const env = { PATH: '', PORT: '0', PLANT_STORE_URL: 'sqlite:plants.db', ...settings }
    const child = startChild(t, command!, args, { cwd, env })
    const line = await waitForOutput(child)
    return [Number(/listening on .*:(\d+)$/m.exec(line)![1]), child]
  }

  test("the build prints the executable's size and bundled packages", () => {
    assert.match(buildOutput, /^Built \S+plant-store \(\d+ MB\), which contains:\nNode \S+ \(MIT/m)
    assert.match(buildOutput, /^plant-store \(MIT\)\n(?:.*\n)*pg \(MIT\)$/m)
  })

  function runWithInvalidPort(...args: readonly string[]): unknown[] {
    const { status, stdout, stderr } = spawnSync(binary, args, { env: { PATH: '', PORT: 'x' }, encoding: 'utf8' })
    return [status, stdout, /^(?:plant-store: \w+)?/.exec(stderr)![0]]
  }

  test('prints its version even if a setting is invalid', () => {
    assert.deepEqual(runWithInvalidPort('--version'), [0, `1.0.0 (Node ${process.versions.node})\n`, ''])
  })

  test('exits with status 2 if a setting is invalid', () => {
    assert.deepEqual(runWithInvalidPort(), [2, '', 'plant-store: PORT'])
  })

  test('responds as expected to every contract case', async (t) => {
    const tokens = Object.entries(CONTRACT_CASES).flatMap(([group, rows]) => rows.map((_, i) => getCaseToken(group, i)))
    const entries = [...tokens.map((token) => `${token}:${token}`), 'reader:reader read']
    const settings = { PLANT_STORE_TOKENS: entries.join(), PLANT_STORE_PAGE: '0' }
    const client = connectClient('http', (await start(t, undefined, settings))[0])
    t.after(() => client.close())
    function received({ headers: { 'x-request-id': id, ...headers }, ...reply }: ComparedResponse): ComparedResponse {
      assert.match(String(id), GENERATED_REQUEST_ID)
      return { ...reply, headers }
    }
    await testCases(t, { name: 'single-file executable', client, isHttp1: true, normalize: received })
  })

  test('keeps plants in SQLite even after SIGKILL', async (t) => {
    const cwd = createTempDirectory(t)
    const [port, child] = await start(t, cwd)
    assert.equal((await sendToPort(port, post(TOKEN, '{"id":9007199254740993,"name":"Fern"}'))).status, 200)
    child.kill('SIGKILL')
    await once(child, 'exit')
    const [again] = await start(t, cwd)
    const { body } = await sendToPort(again, get(TOKEN, '/plants?include=id'))
    assert.equal(body, '[{"id":9007199254740993,"name":"Fern"}]')
    assert.equal((await sendToPort(again, del(TOKEN, 9007199254740993n))).status, 204)
  })

  test(
    'uses at most 15 MiB more memory than the standalone server',
    { skip: process.platform !== 'linux' },
    async (t) => {
      const serverCommand = [process.execPath, '--max-semi-space-size=16', source]
      const [executable, server] = await Promise.all(
        [[binary], serverCommand].map(async (command) => {
          const [port, { pid }] = await start(t, undefined, undefined, command)
          assert.equal((await sendToPort(port, get(TOKEN))).body, '[]')
          return Number(/^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024
        }),
      )
      assert.ok(executable! < server! + 15, `${executable} MiB, and ${server} MiB for the standalone server`)
    },
  )

  test('completes an in-flight request after SIGTERM', async (t) => {
    const [port, child] = await start(t)
    const slow = await RawConnection.open(port)
    slow.send(`POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${TOKEN}\r\nExpect: 100-continue\r\n`)
    slow.send('Content-Type: application/json\r\nContent-Length: 22\r\n\r\n')
    await slow.waitFor(/100 Continue/)
    child.kill('SIGTERM')
    await waitForOutput(child, 'stderr')
    assert.match(await slow.send('{"id":1,"name":"Fern"}').closed, /HTTP\/1\.1 200 OK/)
    assert.deepEqual(await once(child, 'exit'), [0, null])
  })

  test('serves a web UI that works in a browser', { skip: skipWithoutChromium }, async (t) => {
    const page = await openAsAda(t, `http://127.0.0.1:${(await start(t))[0]}`)
    await page.createPlant('1', 'Fern')
    assert.deepEqual(await page.fetchPlants(), [{ name: 'Fern' }])
  })
})
