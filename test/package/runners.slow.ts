import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { storeConformance } from '../../src/conformance/store-conformance.ts'
import { memoryStore } from '../../src/index.ts'
import { readDocument } from '../support/documents.ts'
import { skipWithoutPeers } from '../support/extra-packages.ts'
import { createProject, runScript } from '../support/packed-package.ts'
import { skipBeforeNode } from '../support/skip-reasons.ts'

/** How each runner provides the test function that docs/stores.md names. */
const IMPORTS: Readonly<Record<string, string>> = {
  '`node:test`': "import { test } from 'node:test'",
  Vitest: "import { test } from 'vitest'",
  Mocha: '',
  'Jest (ES modules)': '',
}

/** The rows of the table in docs/stores.md: the `test` option and the command for each runner. */
const rows = [...readDocument('docs/stores.md').text.matchAll(/^\| (.+?) \| `([^`]+)` \| `([^`]+)` \|$/gm)]

test('docs/stores.md lists the same test runners as this test', () => {
  assert.deepEqual(
    rows.map(([, name]) => name),
    Object.keys(IMPORTS),
  )
})

/** The number of checks in the conformance suite. */
let checkCount = 0
storeConformance({ test: () => checkCount++, create: memoryStore })

for (const [, name, register, command] of rows) {
  /** Runs the conformance suite and returns the output of the runner. */
  async function runSuite(t: TestContext, create: string, shouldPass: boolean): Promise<string> {
    const code = `${IMPORTS[name!]}
      import { storeConformance } from 'plant-store/conformance'
      import { memoryStore } from 'plant-store'
      storeConformance({ test: ${register}, create: ${create} })`
    const project = await createProject(t, { 'package.json': '{}', 'test/store.test.mjs': code })
    return runScript(`${shouldPass ? '' : '! '}{ ${command}; } 2>&1`, project, { CI: '1' })
  }

  suite(name, { skip: skipBeforeNode(22) || skipWithoutPeers }, () => {
    test('runs the conformance suite', async (t) => {
      const output = await runSuite(t, 'memoryStore', true)
      const counts = Array.from(output.matchAll(/(\d+) pass|pass (\d+)/g), ([, before, after]) =>
        Number(before ?? after),
      )
      assert.equal(Math.max(...counts), checkCount, output)
    })

    test('prints the error if a conformance test fails', async (t) => {
      const output = await runSuite(t, '() => ({ ...memoryStore(), delete: () => true })', false)
      assert.match(output, /delete\('/)
    })
  })
}
