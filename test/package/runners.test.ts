import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { dirname } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { CHECKS } from '../../src/conformance/checks.ts'
import { codeOf, readDocument } from '../support/package/documents.ts'
import { createProject } from '../support/package/packed.ts'
import { skipWithoutPeers } from '../support/package/peers.ts'

/** What the document says of each runner: its `test`, and the command. */
const DOCUMENTED = new Map(
  [...readDocument('docs/stores.md').text.matchAll(/^\| (.+?) \| `([^`]+)` \| `([^`]+)` \|$/gm)].map(
    ([, name, test, command]) => {
      return [name!, { test: test!, command: command! }]
    },
  ),
)

interface Runner {
  readonly isCommonJs?: true
  /** How a test file has what the document calls `test`. */
  readonly import?: string
  readonly files?: Record<string, string>
  /** The first version of Node that it runs on. */
  readonly since?: number
}

const RUNNERS: Readonly<Record<string, Runner>> = {
  '`node:test`': { import: "import { test } from 'node:test'" },
  Vitest: { import: "import { test } from 'vitest'", since: 22 },
  Mocha: {},
  'Jest, in an ES module': {},
  'Jest, in CommonJS, from Node 24.9 on': { isCommonJs: true, since: 24 },
  'Jest, in CommonJS, with the configuration below': {
    isCommonJs: true,
    files: { 'jest.config.cjs': codeOf('docs/stores.md', 'cjs') },
  },
  AVA: { import: "import test from 'ava'" },
}

test('docs/stores.md names the runners that are tried', () => {
  assert.deepEqual([...DOCUMENTED.keys()], Object.keys(RUNNERS))
})

const NODE = Number.parseInt(process.versions.node)

for (const [name, { isCommonJs, import: imported = '', files, since = 20 }] of Object.entries(RUNNERS)) {
  suite(name, { skip: NODE < since ? `it needs Node ${since}` : skipWithoutPeers() }, () => {
    const { test: registers, command } = DOCUMENTED.get(name)!

    /** Runs the suite on a store. */
    function runSuite(t: TestContext, create: string): Promise<{ status: number; output: string }> {
      const modules = isCommonJs
        ? `const { storeConformance } = require('plant-store/conformance')
           const { memoryStore } = require('plant-store')`
        : `import { storeConformance } from 'plant-store/conformance'
           import { memoryStore } from 'plant-store'`
      const code = `${imported}
        ${modules}
        storeConformance({ test: ${registers}, create: ${create}, storeTimeoutMs: 1000 })`
      return runIn(t, command, { [`test/store.test.${isCommonJs ? 'cjs' : 'mjs'}`]: code, ...files })
    }

    test('runs the suite of the package', async (t) => {
      const { status, output } = await runSuite(t, 'memoryStore')
      assert.equal(status, 0, output)
      assert.match(output, new RegExp(`\\b${Object.keys(CHECKS).length}\\b`))
    })

    test('says which promise a store breaks', async (t) => {
      const { status, output } = await runSuite(t, '() => ({ ...memoryStore(), ping: () => new Promise(() => {}) })')
      assert.notEqual(status, 0, output)
      assert.ok(output.includes('ping() must settle. It has not within 1000 ms.'), output)
    })
  })
}

/** Runs a command in a project with these files. */
async function runIn(
  t: TestContext,
  command: string,
  files: Readonly<Record<string, string>>,
): Promise<{ status: number; output: string }> {
  const project = await createProject(t, { 'package.json': '{}', ...files })
  const bin = fileURLToPath(new URL('../peers/node_modules/.bin', import.meta.url))
  const PATH = [dirname(process.execPath), bin, process.env['PATH']].join(':')
  return new Promise((resolve) => {
    execFile(
      'sh',
      ['-c', command],
      { cwd: project, env: { PATH, CI: '1', NODE_V8_COVERAGE: undefined } },
      (error, stdout, stderr) => {
        resolve({ status: error === null ? 0 : Number(error.code), output: stdout + stderr })
      },
    )
  })
}
