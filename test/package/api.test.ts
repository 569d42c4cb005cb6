import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { API, pagesIn, readDocument } from '../support/package/documents.ts'
import { UNCOVERED } from '../support/package/packed.ts'
import { temporaryDirectory } from '../support/temporary-file.ts'

// It fails if a public name lacks a doc comment, or a link of one leads nowhere.
test('docs/api says what the doc comments say', async (t) => {
  const made = temporaryDirectory(t)
  await promisify(execFile)('node_modules/.bin/typedoc', ['--out', made], { env: UNCOVERED })
  assert.deepEqual(pagesIn(made), pagesIn('docs/api'), 'docs/api is not current: npm run api-docs')
})

test('docs/api has a page for each module', () => {
  const { exports } = JSON.parse(readDocument('package.json').text) as { exports: object }
  const modules = Object.keys(exports).filter((name) => name !== './package.json')
  assert.deepEqual(
    new Set(API.map(({ path }) => path).filter((path) => path !== 'docs/api/README.md')),
    new Set(modules.map((name) => `docs/api/${posix.join('plant-store', name)}.md`)),
  )
})

test('every module of the sources is exported, to compilers without `exports` too', () => {
  const { exports, typesVersions } = JSON.parse(readDocument('package.json').text) as Record<string, { '*': object }>
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'))
  const entries = files.map((path) => /@module plant-store(.*)/.exec(readFileSync(`src/${path}`, 'utf8')))
  const modules = entries.flatMap((entry) => (entry === null ? [] : `.${entry[1]!}`)).sort()
  assert.deepEqual([...modules, './package.json'].sort(), Object.keys(exports!).sort())
  assert.deepEqual(modules, ['.', ...Object.keys(typesVersions!['*']).map((name) => `./${name}`)].sort())
})

test('every function of docs/api has an example', () => {
  const functions = API.flatMap(({ text }) => text.split(/^## /m)).filter((section) => /^\w+\(\)\n/.test(section))
  assert.ok(functions.length > 5)
  for (const section of functions) assert.match(section, /^### Example$/m)
})
