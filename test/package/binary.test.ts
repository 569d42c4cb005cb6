import assert from 'node:assert/strict'
import { execFile, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { before, suite, test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { HTML, SCRIPT, STYLE } from '../../src/standalone/paths/page/texts.ts'
import { CONTRACT_CASES } from '../contract/cases.ts'
import { checkCases, tokenOf, type Reply } from '../contract/check-cases.ts'
import { startChild } from '../support/child.ts'
import { packPackage } from '../support/package/packed.ts'
import { openAsAda } from '../support/page/browser.ts'
import { needsChromium } from '../support/page/chromium.ts'
import { NEW_ID, TOKEN } from '../support/program/program.ts'
import { temporaryDirectory } from '../support/temporary-file.ts'
import { connectTo } from '../support/wire/client.ts'

const HEADERS = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' }

suite('the one file', { skip: Number.parseInt(process.versions.node) < 26 && 'Node 26 makes it' }, () => {
  let binary: string
  let source: string
  let said: string
  before(async () => {
    const { folder } = await packPackage()
    binary = join(folder, 'plant-store')
    source = join(folder, 'node_modules/plant-store/dist/server.js')
    said = (await promisify(execFile)(process.execPath, ['src/build/binary.js', source, binary])).stdout
  })

  /** Starts it where there is no Node. */
  async function start(
    t: TestContext,
    cwd = temporaryDirectory(t),
    settings: NodeJS.ProcessEnv = { PLANT_STORE_TOKENS: `ada:${TOKEN}` },
    [command, ...args]: readonly string[] = [binary],
  ): Promise<[url: string, child: ChildProcess]> {
    const env = { PATH: '', PORT: '0', PLANT_STORE_URL: 'sqlite:plants.db', ...settings }
    const child = startChild(t, command!, args, { cwd, env })
    const [line] = (await once(child.stdout!, 'data')) as [Buffer]
    return [/listening on (\S+)/.exec(String(line))![1]!, child]
  }

  async function send(url: string, method: string, path: string, body?: string): Promise<[number, string]> {
    const response = await fetch(url + path, { method, headers: HEADERS, ...(body === undefined ? {} : { body }) })
    return [response.status, await response.text()]
  }

  test('says how large it is, and what it holds', () => {
    assert.match(
      said,
      /plant-store has \d+ MB, and holds\nNode \S+ \(MIT.*\n(?:.*\n)*plant-store \(MIT\)\n(?:.*\n)*pg \(MIT\)\n/,
    )
  })

  test('says which Node it has, and ends as the program does if a setting is wrong', () => {
    const run = (...args: string[]): unknown[] => {
      const { status, stdout, stderr } = spawnSync(binary, args, { env: { PATH: '', PORT: 'x' }, encoding: 'utf8' })
      return [status, stdout, stderr.split(' takes ')[0]]
    }
    assert.deepEqual(run('--version'), [0, `1.0.0 (Node ${process.versions.node})\n`, ''])
    assert.deepEqual(run(), [2, '', 'plant-store: PORT'])
  })

  test('answers as the contract says', async (t) => {
    const tokens = Object.entries(CONTRACT_CASES).flatMap(([group, rows]) => rows.map((_, i) => tokenOf(group, i)))
    const entries = [...tokens.map((token) => `${token}:${token}`), 'reader:reader read']
    const settings = { PLANT_STORE_TOKENS: entries.join(), PLANT_STORE_PAGE: '0' }
    const client = connectTo('http', Number(new URL((await start(t, undefined, settings))[0]).port))
    t.after(() => client.close())
    function received({ headers: { 'x-request-id': id, ...headers }, ...reply }: Reply): Reply {
      assert.match(String(id), NEW_ID)
      return { ...reply, headers }
    }
    for (const [group, rows] of Object.entries(CONTRACT_CASES)) {
      await t.test(group, () => checkCases(client, group, rows, { prefix: '', isHttp1: true, received }))
    }
  })

  test('keeps plants in SQLite through kill -9', async (t) => {
    const cwd = temporaryDirectory(t)
    const [url, child] = await start(t, cwd)
    assert.deepEqual(await send(url, 'POST', '/plants', '{"id":9007199254740993,"name":"Fern"}'), [
      200,
      '{"name":"Fern"}',
    ])
    child.kill('SIGKILL')
    await once(child, 'exit')
    const [again] = await start(t, cwd)
    const list = '[{"id":9007199254740993,"name":"Fern"}]'
    assert.deepEqual(await send(again, 'GET', '/plants?include=id', undefined), [200, list])
    assert.deepEqual(await send(again, 'DELETE', '/plants/9007199254740993'), [204, ''])
  })

  test('takes no more than 15 MiB above the program', { skip: process.platform !== 'linux' }, async (t) => {
    const program = [process.execPath, '--max-semi-space-size=16', source]
    const [own, other] = await Promise.all(
      [[binary], program].map(async (command) => {
        const [url, { pid }] = await start(t, undefined, undefined, command)
        assert.deepEqual(await send(url, 'GET', '/plants'), [200, '[]'])
        return Number(/^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024
      }),
    )
    assert.ok(own! < other! + 15, `${own} MiB, and the program ${other}`)
  })

  test('answers what is under way when it stops', async (t) => {
    const [url, child] = await start(t)
    const slow = request(`${url}/plants`, { method: 'POST', headers: { ...HEADERS, Expect: '100-continue' } })
    slow.flushHeaders()
    await once(slow, 'continue')
    child.kill('SIGTERM')
    await once(child.stderr!, 'data')
    slow.end('{"id":1,"name":"Fern"}')
    const [response] = (await once(slow, 'response')) as [IncomingMessage]
    response.resume()
    assert.equal(response.statusCode, 200)
    assert.deepEqual(await once(child, 'exit'), [0, null])
  })

  test('has the page', async (t) => {
    const [url] = await start(t)
    const html = HTML.replace('{{version}}', '1.0.0').replace('{{store}}', 'sqlite')
    const served = ['/', '/page.js', '/page.css'].map(async (path) => (await send(url, 'GET', path))[1])
    assert.deepEqual(await Promise.all(served), [html, SCRIPT, STYLE])
  })

  test('has a page that works in a browser', { skip: needsChromium }, async (t) => {
    const page = await openAsAda(t, (await start(t))[0])
    await page.create('1', 'Fern')
    assert.deepEqual(await page.kept(), [{ name: 'Fern' }])
  })
})
