/** Lists which test runs each code block of the README and the docs, or why none does. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { DOCUMENTS, findCodeBlocks, readDocument } from '../support/documents.ts'

const root = new URL('../../', import.meta.url)

/**
 * The test that runs the code blocks of a document, of a heading, or of one language under a heading. readme.test.ts runs
 * the `js` blocks that have no entry here.
 */
const RUN_BY: Readonly<Record<string, string>> = {
  'README.md, Quick start': 'test/package/readme.test.ts',
  'README.md, Run it in production': 'test/package/readme.test.ts',
  'docs/authentication.md, Express, ts': 'test/package/authentication.slow.ts',
  'docs/authentication.md, Cookies and sessions': 'test/package/authentication.slow.ts',
  'docs/authentication.md, JSON Web Tokens, ts': 'test/package/authentication.slow.ts',
  'docs/clients.md, JavaScript': 'test/package/commands.slow.ts',
  'docs/clients.md, With curl': 'test/package/commands.slow.ts',
  'docs/clients.md': 'test/package/clients.slow.ts',
  'docs/configuration.md, Tokens': 'test/package/commands.slow.ts',
  'docs/deployment.md, Docker': 'test/package/dockerfile.slow.ts',
  'docs/deployment.md, Reverse proxies, nginx': 'test/package/recipes.slow.ts',
  'docs/deployment.md, Reverse proxies, haproxy': 'test/package/commands.slow.ts',
  'docs/deployment.md, systemd': 'test/package/commands.slow.ts',
  'docs/embedding.md, Graceful shutdown, ts': 'test/package/examples.slow.ts',
  'docs/frameworks.md, Next.js': 'test/package/next.slow.ts',
  'docs/frameworks.md': 'test/package/frameworks.slow.ts',
  'docs/postgres-high-availability.md, Backup and restore': 'test/package/commands.slow.ts',
  'docs/recipes.md': 'test/package/recipes.slow.ts',
  'docs/sqlite.md': 'test/stores/sqlite-docs.test.ts',
  'docs/stores.md, A store of your own, ts': 'test/package/typescript.slow.ts',
}

/** Code blocks that no test runs, and the reason. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'README.md, Client, sh': 'the tests install the package from another path',
  'docs/observability.md, Queries': 'needs a Prometheus server',
  'docs/observability.md, Alerts': 'needs a Prometheus server',
  'docs/postgres-high-availability.md, Automatic failover': 'needs a cluster of several machines',
  'docs/postgres-high-availability.md, Point-in-time recovery': 'needs a server with a WAL archive',
}

const USED_ROWS = new Set<string>()

for (const document of DOCUMENTS) {
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
      /getCode|findCodeBlocks|findPrograms|readDocument|docs\/sqlite\.md/,
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
