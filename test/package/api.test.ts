import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { API, pagesIn } from '../support/package/documents.ts'
import { UNCOVERED } from '../support/package/packed.ts'
import { temporaryDirectory } from '../support/temporary-file.ts'

// It fails if a public name lacks a doc comment, or a link of one leads nowhere.
test('docs/api says what the doc comments say', async (t) => {
  const made = temporaryDirectory(t)
  await promisify(execFile)('node_modules/.bin/typedoc', ['--out', made], { env: UNCOVERED })
  assert.deepEqual(pagesIn(made), pagesIn('docs/api'), 'docs/api is not current: npm run api-docs')
})

test('every function of docs/api has an example', () => {
  const functions = API.flatMap(({ text }) => text.split(/^## /m)).filter((section) => /^\w+\(\)\n/.test(section))
  assert.ok(functions.length > 5)
  for (const section of functions) assert.match(section, /^### Example$/m)
})
