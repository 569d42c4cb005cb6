/** Lists which test runs each code block of the documents, or why none does. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { findCodeBlocks, DOCUMENTS, readDocument } from '../support/package/documents.ts'

const root = new URL('../../', import.meta.url)

/**
 * The test that runs the code blocks of a document, of a heading, or of one language under a heading. `js` blocks without
 * an entry are run by readme.test.ts or frameworks.test.ts.
 */
const RUN_BY: Readonly<Record<string, string>> = {
  'CONTRIBUTING.md, Setup': '.ci/run',
  'CONTRIBUTING.md, Debug a test': 'test/documents/readme.test.ts',
  'README.md, From JavaScript': 'test/documents/readme.test.ts',
  'README.md, Quick start': 'test/documents/readme.test.ts',
  'README.md, Run it in production': 'test/documents/readme.test.ts',
  'README.md, systemd, ini': 'test/documents/readme.test.ts',
  'docs/clients.md': 'test/documents/clients.test.ts',
  'docs/authentication.md, Express, ts': 'test/package/authentication.test.ts',
  'docs/authentication.md, Cookies and sessions': 'test/package/authentication.test.ts',
  'docs/authentication.md, JSON Web Tokens, ts': 'test/package/authentication.test.ts',
  'docs/deployment.md, systemd': 'test/documents/deployment.test.ts',
  'docs/deployment.md, Docker': 'test/documents/dockerfile.test.ts',
  'docs/deployment.md, Reverse proxies': 'test/documents/deployment.test.ts',
  'docs/deployment.md, Bundling': 'test/package/bundles.test.ts',
  'docs/frameworks.md, Fastify, ts': 'test/package/typescript.test.ts',
  'docs/frameworks.md, Hono, ts': 'test/package/frameworks.test.ts',
  'docs/embedding.md, Graceful shutdown, ts': 'test/package/examples.test.ts',
  'docs/observability.md, Prometheus': 'test/standalone/metrics/prometheus.test.ts',
  'docs/observability.md, Alerts': 'test/standalone/metrics/prometheus.test.ts',
  'docs/postgres.md, Collations': 'test/stores/postgres/check-connection.test.ts',
  'docs/postgres.md, Table and migrations': 'test/documents/readme.test.ts',
  'docs/postgres-high-availability.md, Point-in-time recovery': 'test/documents/deployment.test.ts',
  'docs/postgres-high-availability.md, Backup and restore': 'test/documents/deployment.test.ts',
  'docs/postgres-high-availability.md, Automatic failover, yaml': 'test/support/database/servers/patroni-cluster.ts',
  'docs/postgres-high-availability.md, Automatic failover, haproxy': 'test/support/database/servers/patroni-cluster.ts',
  'docs/recipes.md': 'test/documents/recipes.test.ts',
  'docs/configuration.md, Tokens': 'test/documents/deployment.test.ts',
  'docs/scaling.md': 'test/support/database/servers/distributed-table.ts',
  'docs/sqlite.md, Backup': 'test/documents/deployment.test.ts',
  'docs/sqlite.md, Restore a dump': 'test/documents/deployment.test.ts',
  'docs/sqlite.md, Schema': 'test/documents/readme.test.ts',
  'docs/stores.md, A store of your own, ts': 'test/package/typescript.test.ts',
  'docs/stores.md, In each test runner': 'test/package/runners.test.ts',
}

/** Code blocks that no test runs, and the reason. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'CONTRIBUTING.md, Mutation testing': 'it takes minutes',
  'CONTRIBUTING.md, Architecture': 'a diagram',
  'CONTRIBUTING.md, Release': 'it takes a maintainer of the package',
  'README.md, Install': 'the tests install the package from another path',
  'README.md, Docker': 'needs Docker; test/documents/dockerfile.test.ts runs the instructions of the Dockerfile',
  'README.md, systemd, sh': 'needs root and systemd',
  'docs/postgres-high-availability.md, Automatic failover, sql':
    'the cluster of the tests makes its role in another way',
  'docs/sqlite.md, File permissions': 'an error message, which test/stores/sqlite/open-file.test.ts tests',
  'docs/deployment.md, Single executable': 'test/package/binary.test.ts makes it of what is packed',
}

const USED_ROWS = new Set<string>()

for (const document of [...DOCUMENTS, readDocument('CONTRIBUTING.md')]) {
  const { path, text } = document
  test(`every code block in ${path} is run by a test, or listed in NOT_RUN`, () => {
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

test('RUN_BY and NOT_RUN contain no outdated entries', () => {
  assert.deepEqual(new Set(Object.keys({ ...RUN_BY, ...NOT_RUN })), USED_ROWS)
  for (const file of Object.values(RUN_BY)) {
    assert.match(
      readFileSync(new URL(file, root), 'utf8'),
      /getCode|findCodeBlocks|readDocument|FRAMEWORK_EXAMPLES|README/,
      file,
    )
  }
})

test('every repository file and npm script mentioned in a document exists', () => {
  const { scripts } = JSON.parse(readDocument('package.json').text) as { scripts: object }
  for (const { path, text } of [...DOCUMENTS, readDocument('SECURITY.md'), readDocument('CONTRIBUTING.md')]) {
    for (const [name] of text.matchAll(/(?<![\w./-])(?:src|test|bench|docs)\/[\w./-]*\w/g)) {
      assert.ok(existsSync(new URL(name, root)), `${path}: ${name}`)
    }
    for (const [, name = ''] of text.matchAll(/npm run ([a-z][\w:-]*)/g)) assert.ok(name in scripts, `${path}: ${name}`)
  }
})
