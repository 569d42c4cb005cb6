import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { CHECKS } from '../../src/conformance/checks.ts'
import { codeOf, readDocument } from '../support/package/documents.ts'
import { createProject, runScript } from '../support/package/packed.ts'
import { skipWithoutPeers } from '../support/package/peers.ts'

/** What the document says of each runner: its `test`, and the command. */
const rows = readDocument('docs/stores.md').text.matchAll(/^\| (.+?) \| `([^`]+)` \| `([^`]+)` \|$/gm)
const DOCUMENTED = new Map(Array.from(rows, ([, name, test, command]) => [name!, { test: test!, command: command! }]))

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

    /** Runs the suite on a store, and gives what the runner says. */
    async function runSuite(t: TestContext, create: string, isSound: boolean) {
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
      return runScript(`${isSound ? '' : '! '}{ ${command}; } 2>&1`, project, { CI: '1' })
    }

    test('runs the suite of the package', async (t) => {
      const said = await runSuite(t, 'memoryStore', true)
      assert.match(said, new RegExp(`\\b${Object.keys(CHECKS).length}\\b`))
    })

    test('says which promise a store breaks', async (t) => {
      const said = await runSuite(t, '() => ({ ...memoryStore(), ping: () => new Promise(() => {}) })', false)
      assert.ok(said.includes('ping() must settle. It has not within 1000 ms.'), said)
    })
  })
}
