/** Says where each block of code and each command of the documents is run, or why it is not. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { blocksOf, DOCUMENTS, readDocument, type Block, type Document } from '../support/package/documents.ts'

const root = new URL('../../', import.meta.url)

/** What runs them. All blocks of `js` that have no row are run by readme.test.ts, or hosts.test.ts. */
const BLOCKS: Readonly<Record<string, string>> = {
  'README.md, Try it, sh': '.ci/run',
  'README.md, Use it, console': 'test/documents/readme.test.ts',
  'docs/clients.md, *, js': 'test/documents/clients.test.ts',
  'docs/clients.md, *, ts': 'test/documents/clients.test.ts',
  'docs/clients.md, *, sh': 'test/documents/clients.test.ts',
  'docs/authentication.md, JSON Web Tokens, ts': 'test/package/authentication.test.ts',
  'docs/hosts.md, Hono, ts': 'test/package/hosts.test.ts',
  'docs/hosts.md, Bundles, sh': 'test/package/bundles.test.ts',
  'docs/hosts.md, Bundles, cjs': 'test/package/bundles.test.ts',
  'docs/hosts.md, Bundles, json': 'test/package/bundles.test.ts',
  'docs/postgres.md, The table, sql': 'test/documents/readme.test.ts',
  'docs/postgres.md, High availability, yaml': 'test/support/database/servers/patroni-cluster.ts',
  'docs/postgres.md, High availability, haproxy': 'test/support/database/servers/patroni-cluster.ts',
  'docs/recipes.md, *, js': 'test/documents/recipes.test.ts',
  'docs/recipes.md, *, caddyfile': 'test/documents/recipes.test.ts',
  'docs/recipes.md, *, nginx': 'test/documents/recipes.test.ts',
  'docs/recipes.md, *, sh': 'test/documents/recipes.test.ts',
  'docs/running.md, Tokens, sh': 'test/documents/deployment.test.ts',
  'docs/running.md, Metrics, promql': 'test/standalone/metrics/prometheus.test.ts',
  'docs/running.md, Metrics, yaml': 'test/standalone/metrics/prometheus.test.ts',
  'docs/running.md, As a systemd unit, ini': 'test/documents/deployment.test.ts',
  'docs/running.md, In a container, dockerfile': 'test/documents/dockerfile.test.ts',
  'docs/running.md, Behind a proxy, nginx': 'test/documents/deployment.test.ts',
  'docs/running.md, Behind a proxy, haproxy': 'test/documents/deployment.test.ts',
  'docs/scale.md, *, sql': 'test/support/database/servers/distributed-table.ts',
  'docs/scale.md, A store for each server, ts': 'test/support/database/servers/distributed-table.ts',
  'docs/sqlite.md, Backup, sh': 'test/documents/deployment.test.ts',
  'docs/sqlite.md, What is in the file, sql': 'test/documents/readme.test.ts',
  'docs/stores.md, A store of your own, ts': 'test/package/package.test.ts',
  'docs/stores.md, In each test runner, cjs': 'test/package/runners.test.ts',
}

/** Commands in the text. `npm run` is not among them: its script must exist. */
const COMMANDS: Readonly<Record<string, string>> = {
  'npm ci': '.ci/run',
  'npm start': '.ci/run',
  'node dist/server.js': 'test/documents/dockerfile.test.ts',
  'node --import ./telemetry.mjs main.mjs': 'test/documents/recipes.test.ts',
  'node --build-sea sea.json': 'test/package/bundles.test.ts',
  'node generate.mjs': 'test/documents/clients.test.ts',
  'npx openapi-ts': 'test/documents/clients.test.ts',
  'npx orval': 'test/documents/clients.test.ts',
  bun: 'test/package/runtimes.test.ts',
  deno: 'test/package/runtimes.test.ts',
  'node --test': 'test/package/runners.test.ts',
  vitest: 'test/package/runners.test.ts',
  mocha: 'test/package/runners.test.ts',
  jest: 'test/package/runners.test.ts',
  ava: 'test/package/runners.test.ts',
}

/** What no test runs, and why. */
const NOT_RUN: Readonly<Record<string, string>> = {
  'README.md, Mount it, sh': 'the tests install the packed file, not what the registry has',
  'README.md, Run it as a program, sh': 'the tests run the link to which npx leads',
  'docs/postgres.md, High availability, sql': 'the cluster of the tests makes its role in another way',
  'docs/stores.md, The conformance suite, text': 'a message, which test/conformance/store-conformance.test.ts expects',
  'npx plant-store': 'the tests run the link to which npx leads',
  'npm install': 'the tests install the packed file, and find pg in the project',
  'node --env-file=.env dist/server.js': 'an option of Node',
  'node --inspect dist/server.js': 'an option of Node',
  'pnpm exec': 'shown as what not to do',
  "sqlite3 plants.db 'PRAGMA quick_check'": 'a check of SQLite itself',
  'ulimit -n': 'a limit of the shell',
  'nginx -s reload': 'for a machine that runs nginx as a service',
  'useradd --system plant-store': 'changes the machine',
  'chown root:plant-store': 'changes the machine',
  'chmod 640': 'changes the machine',
  'systemctl reload plant-store': 'needs systemd as the first process',
}

const PROGRAMS = ['npm', 'npx', 'pnpm', 'node', 'bun', 'deno', 'vitest', 'mocha', 'jest', 'ava', 'nginx', 'ulimit']
const SYSTEM = ['useradd', 'chown', 'chmod', 'systemctl', 'sqlite3', 'psql', 'curl', 'docker', 'kubectl', 'certbot']
const COMMAND = new RegExp(`^(?:[A-Z_]+=\\S+ )?((?:${[...PROGRAMS, ...SYSTEM].join('|')}) .*)$`)

/** The names of the rows that a block may have, the best first. */
function rowsOf({ path }: Document, { heading, language }: Block): string[] {
  return [`${path}, ${heading}, ${language}`, `${path}, *, ${language}`]
}

function commandsOf(document: Document): string[] {
  const inText = [...document.text.replace(/^```.*?^```$/gms, '').matchAll(/`([^`\n]+)`/g)].map(([, code]) => code!)
  const single = inText.flatMap((code) => code.split(' && '))
  return single.flatMap((code) => COMMAND.exec(code)?.[1] ?? [])
}

/** The row of a command: that with its name, or with the beginning of it. */
function rowOf(command: string): string | undefined {
  return Object.keys({ ...COMMANDS, ...NOT_RUN }).find((row) => `${command} `.startsWith(`${row} `))
}

const USED = new Set<string>()

for (const document of DOCUMENTS) {
  test(`${document.path} has no block of code that nobody runs`, () => {
    const blocks = blocksOf(document)
    assert.equal(blocks.length, [...document.text.matchAll(/^```/gm)].length / 2)
    const left = blocks.filter((block) => {
      const row = rowsOf(document, block).find((name) => name in BLOCKS || name in NOT_RUN)
      if (row !== undefined) USED.add(row)
      return row === undefined && block.language !== 'js'
    })
    assert.deepEqual(left, [])
  })

  test(`${document.path} has no command that nobody runs`, () => {
    const { scripts } = JSON.parse(readDocument('package.json').text) as { scripts: Record<string, string> }
    const left = commandsOf(document).filter((command) => {
      const script = /^npm run (\S+)/.exec(command)?.[1]
      if (script !== undefined) return !(script in scripts)
      const row = rowOf(command)
      if (row !== undefined) USED.add(row)
      return row === undefined
    })
    assert.deepEqual(left, [])
  })
}

test('each row is needed, and names a file that reads the document', () => {
  const rows = { ...BLOCKS, ...COMMANDS }
  assert.deepEqual(
    [...Object.keys(rows), ...Object.keys(NOT_RUN)].filter((row) => !USED.has(row)),
    [],
  )
  const wrong = Object.entries(rows).filter(([, file]) => {
    return (
      !existsSync(new URL(file, root)) ||
      !/blocksOf|readDocument|HOST_EXAMPLES|README/.test(readFileSync(new URL(file, root), 'utf8'))
    )
  })
  assert.deepEqual(wrong, [])
})

test('every file of the repository that a document names is there', () => {
  const documents = [...DOCUMENTS, readDocument('SECURITY.md'), readDocument('CONTRIBUTING.md')]
  for (const { path, text } of documents) {
    const named = [...text.matchAll(/`((?:src|test|bench|docs)\/[\w./-]*)`/g)].map(([, name]) => name!)
    const absent = named.filter((name) => !existsSync(new URL(name, root)))
    assert.deepEqual(absent, [], path)
  }
})
