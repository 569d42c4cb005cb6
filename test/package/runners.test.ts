import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { CHECKS } from '../../src/conformance/checks.ts'
import { getCode, readDocument } from '../support/package/documents.ts'
import { createProject, runScript } from '../support/package/packed-package.ts'
import { skipWithoutPeers } from '../support/package/extra-packages.ts'
import { skipBeforeNode } from '../support/skip-reasons.ts'

/** The `test` option and the command that the document shows for each runner. */
const rows = readDocument('docs/stores.md').text.matchAll(/^\| (.+?) \| `([^`]+)` \| `([^`]+)` \|$/gm)
const DOCUMENTED_RUNNERS = new Map(
  Array.from(rows, ([, name, test, command]) => [name!, { test: test!, command: command! }]),
)

interface Runner {
  readonly isCommonJs?: true
  /** The import of the test function, if it isn't global. */
  readonly import?: string
  readonly files?: Record<string, string>
  /** The first Node version that the runner supports. */
  readonly since?: number
}

const RUNNERS: Readonly<Record<string, Runner>> = {
  '`node:test`': { import: "import { test } from 'node:test'" },
  Vitest: { import: "import { test } from 'vitest'", since: 22 },
  Mocha: {},
  'Jest, in an ES module': {},
  'Jest, in CommonJS, with Node 24.9 or later': { isCommonJs: true, since: 24 },
  'Jest, in CommonJS, with the configuration below': {
    isCommonJs: true,
    files: { 'jest.config.cjs': getCode('docs/stores.md', 'cjs') },
  },
  AVA: { import: "import test from 'ava'" },
}

test('docs/stores.md lists the same test runners as this test', () => {
  assert.deepEqual([...DOCUMENTED_RUNNERS.keys()], Object.keys(RUNNERS))
})

for (const [name, { isCommonJs, import: imported = '', files, since = 20 }] of Object.entries(RUNNERS)) {
  suite(name, { skip: skipBeforeNode(since) || skipWithoutPeers }, () => {
    const { test: registers, command } = DOCUMENTED_RUNNERS.get(name)!

    /**
     * Runs the conformance suite and returns the output of the runner.
     * @param shouldPass whether the runner must exit with 0
     */
    async function runSuite(t: TestContext, create: string, shouldPass: boolean) {
      const modules = isCommonJs
        ? `const { storeConformance } = require('plant-store/conformance')
           const { memoryStore } = require('plant-store')`
        : `import { storeConformance } from 'plant-store/conformance'
           import { memoryStore } from 'plant-store'`
      const code = `${imported}
        ${modules}
        storeConformance({ test: ${registers}, create: ${create}, storeTimeoutMs: 1000 })`
      const file = `test/store.test.${isCommonJs ? 'cjs' : 'mjs'}`
      const project = await createProject(t, { 'package.json': '{}', [file]: code, ...files })
      return runScript(`${shouldPass ? '' : '! '}{ ${command}; } 2>&1`, project, { CI: '1' })
    }

    test('runs all tests of the conformance suite', async (t) => {
      const output = await runSuite(t, 'memoryStore', true)
      assert.match(output, new RegExp(`\\b${Object.keys(CHECKS).length}\\b`))
    })

    test('prints the error if a conformance test fails', async (t) => {
      const output = await runSuite(t, '() => ({ ...memoryStore(), ping: () => new Promise(() => {}) })', false)
      assert.ok(output.includes('ping() timed out after 1000 ms.'), output)
    })
  })
}

/** Functions with which the test files below start a service and send requests to it. */
const TEST_HELPERS = `
  import { createServer, request } from 'node:http'
  import { createPlantStore, memoryStore } from 'plant-store'
  import { sqliteStore } from 'plant-store/sqlite'

  async function serve(listener) {
    // A failed test doesn't close the server, and Jest would wait for it.
    const server = createServer(listener).unref()
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
    return server
  }

  function send(port, method, body) {
    const headers = { authorization: 'Bearer secret', 'content-type': 'application/json' }
    return new Promise((resolve, reject) => {
      request({ host: '127.0.0.1', port, path: '/plants', method, headers, agent: false }, (response) => {
        response.setEncoding('utf8').toArray().then((pieces) => resolve(pieces.join('')), reject)
      }).on('error', reject).end(body)
    })
  }`

/** Uses stores and a service, first with the runner's fake timers, and then with real timers. */
const WITH_FAKE_TIMERS = `${TEST_HELPERS}
  test('plant-store works', async () => {
    const [memory, sqlite] = [memoryStore(), sqliteStore(':memory:')]
    for (let id = 2n; id <= 2500n; id++) memory.create('ada', { id, name: 'Fern' })
    const server = await serve(createPlantStore({ store: memory, tokens: { secret: 'ada' } }))
    const { port } = server.address()
    let id = 1n
    for (const switchTimers of [useFakeTimers, useRealTimers]) {
      switchTimers()
      expect(await sqlite.create('ada', { id, name: 'Fern' })).toBe(true)
      expect(await send(port, 'POST', JSON.stringify({ id: Number(id) - 1, name: 'Fern' }))).toBe('{"name":"Fern"}')
      expect(JSON.parse(await send(port, 'GET')).length).toBe(2499 + Number(id++))
    }
    server.close()
  })`

const JEST = "import { jest } from '@jest/globals'\nconst { useFakeTimers, useRealTimers } = jest"
const VITEST = "import { expect, test, vi } from 'vitest'\nconst { useFakeTimers, useRealTimers } = vi"

suite('stores and services work', { skip: skipBeforeNode(24) || skipWithoutPeers }, () => {
  for (const [name, head, runner, jest] of [
    ['fake timers of Vitest', VITEST, 'Vitest', {}],
    ['fake timers of Jest', JEST, 'Jest, in an ES module', {}],
    ['globally enabled fake timers of Jest', JEST, 'Jest, in an ES module', { fakeTimers: { enableGlobally: true } }],
  ] as const) {
    test(`with ${name}`, async (t) => {
      const files = { 'package.json': JSON.stringify({ jest }), 'test/timers.test.mjs': head + WITH_FAKE_TIMERS }
      const project = await createProject(t, files)
      const output = await runScript(`{ ${DOCUMENTED_RUNNERS.get(runner)!.command}; } 2>&1`, project, { CI: '1' })
      assert.match(output, /1 passed/)
    })
  }
})

/** Tests for Jest's jsdom environment, which lacks `setImmediate` and has a different `Uint8Array` than Node. */
const JSDOM_TESTS = {
  'streams a list longer than a store page': `
    expect(typeof setImmediate).toBe('undefined')
    const store = memoryStore()
    for (let id = 1n; id <= 2500n; id++) store.create('ada', { id, name: 'Fern' })
    const server = await serve(createPlantStore({ store, tokens: { secret: 'ada' } }))
    expect(JSON.parse(await send(server.address().port, 'GET')).length).toBe(2500)
    server.close()`,
  'accepts a Buffer from a body parser': `
    expect(Buffer.alloc(0) instanceof Uint8Array).toBe(false)
    const plants = createPlantStore({ tokens: { secret: 'ada' } })
    const server = await serve(async (request, response) => {
      request.body = Buffer.concat(await request.toArray())
      plants(request, response)
    })
    expect(await send(server.address().port, 'POST', '{"id":1,"name":"Fern"}')).toBe('{"name":"Fern"}')
    server.close()`,
}

suite("a service in Jest's jsdom environment", { skip: skipBeforeNode(24) || skipWithoutPeers }, () => {
  for (const [name, code] of Object.entries(JSDOM_TESTS)) {
    test(name, async (t) => {
      const files = {
        'package.json': JSON.stringify({ jest: { testEnvironment: 'jsdom' } }),
        'test/jsdom.test.mjs': `${TEST_HELPERS}\ntest('plant-store works', async () => {${code}\n})`,
      }
      const project = await createProject(t, files)
      const { command } = DOCUMENTED_RUNNERS.get('Jest, in an ES module')!
      assert.match(await runScript(`{ ${command}; } 2>&1`, project, { CI: '1' }), /1 passed/)
    })
  }
})
