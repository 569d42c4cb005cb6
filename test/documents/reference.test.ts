/** Checks that the parts of the docs that are derived from the source are up to date: `npm run reference`. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ERRORS } from '../../src/http/errors.ts'
import { OPERATIONS, RESOURCE_PATHS } from '../../src/operations.ts'
import { readMarkdownFiles, readTableColumn } from '../support/package/documents.ts'
import { runScript } from '../support/package/packed-package.ts'
import { skipWithoutTools } from '../support/package/extra-packages.ts'
import { createTempDirectory } from '../support/temp-files.ts'

test('the README lists every operation', () => {
  const listed = readTableColumn('README.md', /^\| `([A-Z]+ \/\S*)` \|/gm)
  const operations = RESOURCE_PATHS.flatMap((path) => Object.keys(OPERATIONS[path]).map((name) => `${name} ${path}`))
  // The README doesn't list HEAD, which every GET supports.
  const expected = operations.filter((name) => !name.startsWith('HEAD ')).sort()
  assert.deepEqual(listed.sort(), expected, 'README.md is outdated: edit the table of operations in its section "API"')
  const examples = readTableColumn('CONTRIBUTING.md', /^For example `([A-Z]+ \/\S*)`/gm)
  assert.deepEqual(
    examples.map((name) => operations.includes(name)),
    [false],
    'the example of a new operation already exists',
  )
})

test('docs/errors.md lists every error code, and what to do about it', () => {
  const errors = Object.values(ERRORS).map(({ error }) => String(error))
  const listed = readTableColumn('docs/errors.md', /^\| (\d{5}) \| [^|]+ \| [^|]+ \|$/gm)
  assert.deepEqual(listed, errors.sort(), 'docs/errors.md is outdated: edit its table')
})

// Fails if a public name has no doc comment, or if a doc comment has a broken link.
test('docs/api matches the doc comments', { skip: skipWithoutTools }, async (t) => {
  const output = createTempDirectory(t)
  await runScript(`typedoc --options test/tools/typedoc.json --out '${output}'`)
  const [actual, expected] = ['docs/api', output].map(readMarkdownFiles) as [object, object]
  const outdated = Object.entries({ ...actual, ...expected }).flatMap(([name]) =>
    Reflect.get(actual, name) === Reflect.get(expected, name) ? [] : name,
  )
  assert.deepEqual(outdated, [], 'docs/api is outdated: run "npm run api-docs"')
})
