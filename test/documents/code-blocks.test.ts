/** Says where each block of code of the documents is run, or why it is not. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { findCodeBlocks, DOCUMENTS, readDocument } from '../support/package/documents.ts'

const root = new URL('../../', import.meta.url)

/**
 * What runs the blocks of a document, of a heading, or of a language under it. All blocks of `js` that have no row are
 * run by readme.test.ts, or frameworks.test.ts.
 */
const RUN_BY: Readonly<Record<string, string>> = {
  'CONTRIBUTING.md, Set up': '.ci/run',
  'CONTRIBUTING.md, Debug one case': 'test/documents/readme.test.ts',
  'README.md, Try it': '.ci/run',
  'README.md, Use it, console': 'test/documents/readme.test.ts',
  'docs/clients.md': 'test/documents/clients.test.ts',
  'docs/authentication.md, JSON Web Tokens, ts': 'test/package/authentication.test.ts',
  'docs/deployment.md, As a systemd unit': 'test/documents/deployment.test.ts',
  'docs/deployment.md, In a container': 'test/documents/dockerfile.test.ts',
  'docs/deployment.md, Behind a proxy': 'test/documents/deployment.test.ts',
  'docs/deployment.md, Bundles': 'test/package/bundles.test.ts',
  'docs/frameworks.md, Hono, ts': 'test/package/frameworks.test.ts',
  'docs/embedding.md, Stop a server of your own, ts': 'test/package/examples.test.ts',
  'docs/observability.md, Metrics': 'test/standalone/metrics/prometheus.test.ts',
  'docs/postgres.md, Collations': 'test/stores/postgres/check-connection.test.ts',
  'docs/postgres.md, The table': 'test/documents/readme.test.ts',
  'docs/postgres-high-availability.md, A point in time': 'test/documents/deployment.test.ts',
  'docs/postgres-high-availability.md, Backup and restore': 'test/documents/deployment.test.ts',
  'docs/postgres-high-availability.md, High availability, yaml': 'test/support/database/servers/patroni-cluster.ts',
  'docs/postgres-high-availability.md, High availability, haproxy': 'test/support/database/servers/patroni-cluster.ts',
  'docs/recipes.md': 'test/documents/recipes.test.ts',
  'docs/configuration.md, Tokens': 'test/documents/deployment.test.ts',
  'docs/scaling.md': 'test/support/database/servers/distributed-table.ts',
  'docs/sqlite.md, Backup': 'test/documents/deployment.test.ts',
  'docs/sqlite.md, Restore a dump': 'test/documents/deployment.test.ts',
  'docs/sqlite.md, What is in the file': 'test/documents/readme.test.ts',
  'docs/stores.md, A store of your own, ts': 'test/package/typescript.test.ts',
  'docs/stores.md, In each test runner': 'test/package/runners.test.ts',
}

/** What no test runs, and why. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'CONTRIBUTING.md, See whether the tests notice': 'it takes minutes',
  'CONTRIBUTING.md, Find your way': 'a picture',
  'CONTRIBUTING.md, Release': 'it takes a maintainer of the package',
  'README.md, Mount it, sh': 'the tests install the packed file, not what the registry has',
  'docs/postgres-high-availability.md, High availability, sql':
    'the cluster of the tests makes its role in another way',
  'docs/sqlite.md, File permissions': 'an error message, which test/stores/sqlite/open-file.test.ts tests',
  'docs/deployment.md, One file': 'test/package/binary.test.ts makes it of what is packed',
}

const USED_ROWS = new Set<string>()

for (const document of [...DOCUMENTS, readDocument('CONTRIBUTING.md')]) {
  const { path, text } = document
  test(`${path} has no block of code that nobody runs`, () => {
    const blocks = findCodeBlocks(document)
    assert.equal(blocks.length, [...text.matchAll(/^```/gm)].length / 2)
    for (const { heading, language, line } of blocks) {
      const names = [`${path}, ${heading}, ${language}`, `${path}, ${heading}`, path]
      const row = names.find((name) => name in RUN_BY || name in NOT_RUN)
      assert.ok(row !== undefined || language === 'js', `${path}:${line}`)
      if (row !== undefined) USED_ROWS.add(row)
    }
  })
}

test('each row is needed, and names a file that reads the document', () => {
  assert.deepEqual(new Set(Object.keys({ ...RUN_BY, ...NOT_RUN })), USED_ROWS)
  for (const file of Object.values(RUN_BY)) {
    assert.match(
      readFileSync(new URL(file, root), 'utf8'),
      /getCode|findCodeBlocks|readDocument|FRAMEWORK_EXAMPLES|README/,
      file,
    )
  }
})

test('every file of the repository and every script that a document names is there', () => {
  const { scripts } = JSON.parse(readDocument('package.json').text) as { scripts: object }
  for (const { path, text } of [...DOCUMENTS, readDocument('SECURITY.md'), readDocument('CONTRIBUTING.md')]) {
    for (const [name] of text.matchAll(/(?<![\w./-])(?:src|test|bench|docs)\/[\w./-]*\w/g)) {
      assert.ok(existsSync(new URL(name, root)), `${path}: ${name}`)
    }
    for (const [, name = ''] of text.matchAll(/npm run ([a-z][\w:-]*)/g)) assert.ok(name in scripts, `${path}: ${name}`)
  }
})
