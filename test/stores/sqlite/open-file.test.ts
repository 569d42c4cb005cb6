import assert from 'node:assert/strict'
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import { dirname, join, relative } from 'node:path'
import process from 'node:process'
import { suite, test, type TestContext } from 'node:test'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { promisify } from 'node:util'
import { listStoredIds } from '../../support/wire/service.ts'
import { skipBeforeNode } from '../../support/skip-reasons.ts'
import {
  createDatabasePath,
  openSqlite,
  openSqliteStore,
  skipWithoutSqlite,
  skipWithoutFileUris,
} from '../../support/database/sqlite-file.ts'

/** Creates a database file whose only plant is still in the WAL, as after a kill. */
async function createFileWithLog(t: TestContext): Promise<string> {
  const { path, store } = openSqliteStore(t)
  await store.create('ada', { id: 1n, name: 'Monstera' })
  const left = createDatabasePath(t)
  for (const part of ['', '-wal']) fs.copyFileSync(path + part, left + part)
  return left
}

test('the store recovers plants from the WAL', { skip: skipWithoutSqlite }, async (t) => {
  const { store } = openSqliteStore(t, {}, await createFileWithLog(t))
  assert.deepEqual(await listStoredIds(store), [1n])
})

const skipWithoutPermissions = skipBeforeNode(24)

test(
  "the store throws instead of creating a file if Node's permissions forbid writing",
  { skip: skipWithoutPermissions },
  (t) => {
    const path = createDatabasePath(t)
    const code = `import { sqliteStore } from './src/stores/sqlite/sqlite-store.ts'; sqliteStore('${path}')`
    const writable = `--allow-fs-write=${process.env['NODE_V8_COVERAGE'] ?? '/dev/null'}`
    const args = ['--permission', '--allow-fs-read=*', writable, '--input-type=module', '--eval', code]
    const { stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
    assert.match(stderr, /Error: SQLite database .*plants\.db: Access .* restricted\. Use --allow-fs-write /)
    assert.equal(fs.existsSync(path), false)
  },
)

suite('the store rejects a WAL that SQLite would delete', { skip: skipWithoutSqlite }, () => {
  for (const [name, spoil] of [
    ['because the database file is missing', (path: string) => fs.rmSync(path)],
    ['because the database file is empty', (path: string) => fs.writeFileSync(path, '')],
  ] as const) {
    test(name, async (t) => {
      const path = await createFileWithLog(t)
      spoil(path)
      const contentOf = (): unknown[] =>
        [path, `${path}-wal`].map((name) => (fs.existsSync(name) ? fs.readFileSync(name) : 'none'))
      const before = contentOf()
      const reason =
        'the database file is missing or empty, but its WAL (-wal) can contain plants; opening it would delete the WAL'
      const error = { name: 'Error', message: `SQLite database ${path}: ${reason}` }
      assert.throws(() => sqliteStore(path), error)
      assert.deepEqual(contentOf(), before)
      assert.throws(() => sqliteStore(openSqlite(t, path)), error)
      assert.deepEqual(contentOf()[1], before[1])
    })
  }

  test(
    'the store rejects a WAL that SQLite would delete, even if the path is a URI',
    { skip: skipWithoutFileUris },
    async (t) => {
      const path = await createFileWithLog(t)
      fs.rmSync(path)
      assert.throws(() => sqliteStore(`file:${path}`), /its WAL \(-wal\) can contain plants/)
      assert.equal(fs.existsSync(path), false)
      assert.equal(fs.existsSync(`${path}-wal`), true)
    },
  )

  test('the store rejects a WAL that SQLite would delete, even if the path is a symbolic link', async (t) => {
    const path = await createFileWithLog(t)
    fs.rmSync(path)
    const link = createDatabasePath(t)
    fs.symlinkSync(path, link)
    assert.throws(() => sqliteStore(link), /its WAL \(-wal\) can contain plants/)
    assert.equal(fs.existsSync(`${path}-wal`), true)
  })
})

test('the store opens an empty file with an empty WAL', { skip: skipWithoutSqlite }, async (t) => {
  const path = createDatabasePath(t)
  for (const part of ['', '-wal']) fs.writeFileSync(path + part, '')
  assert.deepEqual(await listStoredIds(openSqliteStore(t, {}, path).store), [])
})

const getModes = (path: string) =>
  ['', '-wal', '-shm'].map((part) => (fs.statSync(path + part).mode & 0o777).toString(8))

test('the store keeps the permissions of an existing file', { skip: skipWithoutSqlite }, (t) => {
  const path = createDatabasePath(t)
  fs.writeFileSync(path, '')
  fs.chmodSync(path, 0o640)
  openSqliteStore(t, {}, path)
  assert.deepEqual(getModes(path), ['640', '640', '640'])
})

suite('the store creates a file that only its user can read', { skip: skipWithoutSqlite }, () => {
  const toUri = (path: string) => `file:${path.replace('plants', 'pl%61nts')}`
  for (const [name, sourceOf] of [
    ['for a path', (path: string) => path],
    ['for a relative path', (path: string) => relative('.', path)],
    ['for a URI', toUri],
    ['for a URI with parameters', (path: string) => `${toUri(path)}?mode=rwc&cache=private#fragment`],
    ['for file:///', (path: string) => `file://${path}`],
    ['for file://localhost/', (path: string) => `file://localhost${path}`],
    ['for a relative URI', (path: string) => `file:${relative('.', path)}`],
    [
      'for a symbolic link',
      (path: string) => {
        const link = `${path}.link`
        fs.symlinkSync(path, link)
        return link
      },
    ],
    [
      'for a URI of a symbolic link',
      (path: string) => {
        const link = `${path}.link`
        fs.symlinkSync(path, link)
        return `file:${link}`
      },
    ],
  ] as const) {
    test(name, { skip: name.includes('URI') || name.includes('file:') ? skipWithoutFileUris : false }, (t) => {
      const umask = process.umask(0)
      t.after(() => process.umask(umask))
      const path = createDatabasePath(t)
      openSqliteStore(t, {}, sourceOf(path))
      assert.deepEqual(getModes(path), ['600', '600', '600'])
    })
  }
})

suite('the store does not create a missing file', { skip: skipWithoutSqlite }, () => {
  const disabled = 'the file does not exist and migrations are disabled'
  const forbidden = 'the file does not exist, and the mode in its URI forbids creating it'
  for (const [name, sourceOf, migrate, problem] of [
    ['with migrate: false', (path: string) => path, false, disabled],
    ['with migrate: false and a URI', (path: string) => `file:${path}`, false, disabled],
    ['with mode=rw', (path: string) => `file:${path}?mode=rw`, true, forbidden],
  ] as const) {
    test(name, { skip: skipWithoutFileUris }, (t) => {
      const path = createDatabasePath(t)
      const source = sourceOf(path)
      const message = `SQLite database ${source}: ${problem}`
      assert.throws(() => sqliteStore(source, { migrate }), { name: 'Error', message })
      assert.equal(fs.existsSync(path), false)
    })
  }
})

test('the store rejects a URI if Node would treat the URI as a file name', { skip: skipWithoutSqlite }, (t) => {
  const DatabaseSync = t.mock.fn(() => {
    throw new Error('unable to open database file')
  })
  t.mock.method(process, 'getBuiltinModule', () => ({ DatabaseSync }))
  const source = `file:${createDatabasePath(t)}`
  const message = `SQLite database ${source}: file: URIs need a later version of Node.js; use a file path instead`
  assert.throws(() => sqliteStore(source), { name: 'Error', message })
})

// SQLite would hang on a FIFO.
suite('the store rejects a path that is not a regular file:', { skip: skipWithoutSqlite }, () => {
  for (const part of ['', '-wal', '-shm', '-journal']) {
    for (const [kind, create] of [
      ['a FIFO', (path: string) => execFileSync('mkfifo', [path])],
      ['a directory', (path: string) => fs.mkdirSync(path)],
      ['a device', (path: string) => fs.symlinkSync('/dev/null', path)],
    ] as const) {
      test(`${kind} as plants.db${part}`, (t) => {
        const path = createDatabasePath(t)
        create(path + part)
        for (const migrate of [true, false]) {
          if (part !== '') fs.writeFileSync(path, '')
          const message = `SQLite database ${path}: ${path}${part} is not a regular file`
          assert.throws(() => sqliteStore(path, { migrate }), { name: 'Error', message })
        }
      })
    }
  }
})

/** Opens a store as an unprivileged user, because permissions don't apply to root. Returns the error message. */
async function openUnprivileged(path: string, migrate: boolean): Promise<string> {
  const program = `
    import { sqliteStore } from './src/stores/sqlite/sqlite-store.ts'
    if (process.geteuid() === 0) process.setuid(65534)
    try { sqliteStore('${path}', { migrate: ${migrate} }) } catch (error) { process.stdout.write(error.message) }`
  const args = [...process.execArgv, '--input-type=module', '--eval', program]
  const env = { ...process.env, NODE_V8_COVERAGE: undefined }
  return (await promisify(execFile)(process.execPath, args, { env })).stdout
}

suite('the error names the inaccessible file:', { skip: skipWithoutSqlite }, () => {
  for (const [name, deny, part, reason] of [
    ['a database without permissions', (path: string) => fs.chmodSync(path, 0), '', 'unable to open database file'],
    ['a read-only database', (path: string) => fs.chmodSync(path, 0o444), '', 'attempt to write a readonly database'],
    [
      'the WAL of another user',
      (path: string) => fs.chmodSync(`${path}-wal`, 0),
      '-wal',
      'unable to open database file',
    ],
    [
      'the shared memory of another user',
      (path: string) => {
        fs.writeFileSync(`${path}-shm`, '', { mode: 0 })
      },
      '-shm',
      'unable to open database file',
    ],
    [
      'a read-only folder',
      (path: string) => {
        fs.rmSync(`${path}-wal`)
        fs.chmodSync(dirname(path), 0o555)
      },
      '/..',
      'attempt to write a readonly database',
    ],
  ] as const) {
    test(name, async (t) => {
      const path = await createFileWithLog(t)
      for (const part of ['', '-wal']) fs.chmodSync(path + part, 0o666)
      deny(path)
      if (process.geteuid!() === 0) fs.chownSync(dirname(path), 65_534, 65_534)
      const denied = part === '/..' ? dirname(path) : path + part
      const message = `SQLite database ${path}: ${reason}; EACCES: permission denied, access '${denied}'`
      const messages = [await openUnprivileged(path, true), await openUnprivileged(path, false)]
      fs.chmodSync(dirname(path), 0o700)
      assert.deepEqual(messages, [message, message])
    })
  }
})

suite('the store warns once about insecure permissions', { skip: skipWithoutSqlite }, () => {
  for (const [name, mode, access] of [
    ['if other users can read the files', 0o644, 'read'],
    ['if other users can write the files', 0o602, 'write'],
    ['if other users can read and write the files', 0o666, 'read and write'],
  ] as const) {
    test(name, (t) => {
      const path = createDatabasePath(t)
      fs.writeFileSync(path, '')
      fs.chmodSync(path, mode)
      const warnings: string[] = []
      openSqliteStore(t, { onWarning: (message: string) => warnings.push(message) }, path)
      const expected = ['', '-wal', '-shm'].map(
        (part) => `SQLite database ${path}: other users can ${access} ${path}${part} (mode ${mode.toString(8)})`,
      )
      assert.deepEqual(warnings, expected)
    })
  }

  test('the store warns if only the WAL is readable by other users', async (t) => {
    const path = await createFileWithLog(t)
    fs.chmodSync(path, 0o600)
    fs.chmodSync(`${path}-wal`, 0o604)
    const warnings: string[] = []
    openSqliteStore(t, { onWarning: (message: string) => warnings.push(message) }, path)
    assert.deepEqual(warnings, [`SQLite database ${path}: other users can read ${path}-wal (mode 604)`])
  })

  test('the store warns if other users can replace the files in the folder', (t) => {
    const path = createDatabasePath(t)
    fs.chmodSync(dirname(path), 0o777)
    const warnings: string[] = []
    openSqliteStore(t, { onWarning: (message: string) => warnings.push(message) }, path)
    assert.deepEqual(warnings, [
      `SQLite database ${path}: other users can replace files in ${dirname(path)} (mode 777)`,
    ])
  })

  test('the store does not warn about group access or a folder with the sticky bit', (t) => {
    const path = createDatabasePath(t)
    fs.writeFileSync(path, '')
    fs.chmodSync(path, 0o660)
    fs.chmodSync(dirname(path), 0o1777)
    const warnings: string[] = []
    openSqliteStore(t, { onWarning: (message: string) => warnings.push(message) }, path)
    assert.deepEqual(warnings, [])
  })
})

test('an in-memory database ignores a file named -wal', { skip: skipWithoutSqlite }, async (t) => {
  const path = await createFileWithLog(t)
  const before = process.cwd()
  t.after(() => process.chdir(before))
  process.chdir(dirname(path))
  fs.copyFileSync(`${path}-wal`, join(dirname(path), '-wal'))
  const { store } = openSqliteStore(t, {}, ':memory:')
  assert.deepEqual(await listStoredIds(store), [])
})
