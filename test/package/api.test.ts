import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { API } from '../support/package/documents.ts'
import { UNCOVERED } from '../support/package/packed.ts'
import { temporaryFile } from '../support/temporary-file.ts'

const run = promisify(execFile)
const SCRIPT = fileURLToPath(new URL('../../src/build/api-docs.js', import.meta.url))

const { text } = API

// It fails if a public name lacks a doc comment.
test('docs/api.md says what the doc comments say', async (t) => {
  const made = temporaryFile(t, '')
  await run(process.execPath, [SCRIPT, made], { env: UNCOVERED })
  assert.ok((await readFile(made, 'utf8')) === text, 'docs/api.md is not current: npm run api-docs')
})

test('every link of docs/api.md leads to a place in it', () => {
  const anchors = [...text.matchAll(/<a id="([^"]+)">/g)].map(([, id]) => `#${id!}`)
  assert.deepEqual(anchors, [...new Set(anchors)])
  const targets = [...text.matchAll(/\]\(([^)]*)\)/g)].map(([, target]) => target!)
  assert.deepEqual(
    targets.filter((target) => !anchors.includes(target)),
    [],
  )
})

test('every function of docs/api.md has an example', () => {
  const functions = text.split(/^### /m).filter((section) => /^\w+\(\)\n/.test(section))
  assert.ok(functions.length > 5)
  for (const section of functions) assert.match(section, /^#### Example$/m)
})

test('docs/api.md has no heading below the sixth level, which would be none', () => {
  assert.doesNotMatch(text, /^#{7}/m)
})
