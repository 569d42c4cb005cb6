import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { readSettings } from '../../src/standalone/settings/settings.ts'
import { createTempDirectory, createTempFile } from '../support/temp-files.ts'

async function rejects(environment: Record<string, string>, message: string): Promise<void> {
  await assert.rejects(readSettings(environment), { name: 'SettingError', message, exitStatus: 2 })
}

suite('settings', () => {
  test('have the documented defaults', async () => {
    const { tokens, storeUrl, host, port, adminPort, migrate, webUi, accessLog } = await readSettings({})
    assert.deepEqual([tokens, storeUrl.current(), host, port], [undefined, 'memory:', '127.0.0.1', 3000])
    assert.deepEqual([adminPort, migrate, webUi, accessLog], [undefined, true, true, false])
  })

  const ORIGINS = 'comma-separated origins such as https://app.example, or *'
  const INVALID: readonly (readonly [name: string, expects: string, ...values: readonly string[]])[] = [
    ['HOST', 'a host name, an IP address, or the absolute path of a Unix socket of at most 103 bytes', '', ' a', 'a b'],
    ['PORT', 'an integer from 0 to 65535', '', '-1', '65536', '1.5', '0x1', '01', ' 1', '3000\r'],
    ['PLANT_STORE_MIGRATE', '1 or 0', '', 'true', '2'],
    [
      'PLANT_STORE_URL',
      'a URL such as memory:, sqlite:plants.db, postgres://user:password@host/database',
      '',
      'mysql://a',
    ],
    ['PLANT_STORE_POSTGRES_TABLE', 'a schema and a table, such as public.plants', '', 'a', 'a.b c', 'a.b.c'],
    ['PLANT_STORE_CORS_ORIGINS', ORIGINS, '', 'a.example', 'https://A.example/', 'https://*.example'],
    ['PLANT_STORE_MAX_LIMIT', 'an integer from 1 to 2147483647', '0', 'none'],
    ['PLANT_STORE_STORE_TIMEOUT_MS', 'an integer from 1 to 2147483647', '0', '2147483648'],
    ['PLANT_STORE_MAX_HEADER_BYTES', 'an integer from 1024 to 1048576', '1023'],
  ]
  for (const [name, expects, ...values] of INVALID) {
    for (const value of values) {
      test(`${name}=${JSON.stringify(value)} is rejected`, () =>
        rejects({ [name]: value }, `${name} must be ${expects}`))
    }
  }

  test('reject a Unix socket path that is too long', () =>
    rejects(
      { HOST: `/${'a'.repeat(103)}` },
      'HOST must be a host name, an IP address, or the absolute path of a Unix socket of at most 103 bytes',
    ))

  test('reject bytes that are not UTF-8, which Node decodes as U+FFFD', () =>
    rejects(
      { PLANT_STORE_TOKENS: 'ad\ufffd:YWRh' },
      'PLANT_STORE_TOKENS must be comma-separated entries in UTF-8: owner:token or owner:sha256=<64 hexadecimal digits>, followed by " read" if the token is read-only',
    ))

  const UNKNOWN: readonly (readonly [name: string, nearest: string])[] = [
    ['PLANT_STORE_TOKEN', 'PLANT_STORE_TOKENS'],
    ['plant_store_tokens', 'PLANT_STORE_TOKENS'],
    ['PLANT_STORE_PORT', 'PORT'],
    ['PLANT_STORE_MAX_BODY_BYTE', 'PLANT_STORE_MAX_BODY_BYTES'],
  ]
  for (const [name, nearest] of UNKNOWN) {
    test(`${name} is unknown, and ${nearest} is suggested`, () =>
      rejects({ [name]: '1' }, `unknown setting ${name}; did you mean ${nearest}?`))
  }

  test('skip the variables that Kubernetes creates for a service called plant-store', async () => {
    const { adminPort } = await readSettings({
      PLANT_STORE_SERVICE_HOST: '10.0.0.1',
      PLANT_STORE_SERVICE_PORT: '3000',
      PLANT_STORE_SERVICE_PORT_HTTP: '3000',
      PLANT_STORE_PORT: 'tcp://10.0.0.1:3000',
      PLANT_STORE_PORT_3000_TCP: 'tcp://10.0.0.1:3000',
      PLANT_STORE_PORT_3000_TCP_PROTO: 'tcp',
      PLANT_STORE_PORT_3000_TCP_PORT: '3000',
      PLANT_STORE_PORT_3000_TCP_ADDR: '10.0.0.1',
      PLANT_STORE_ADMIN_PORT: 'tcp://10.0.0.2:3001',
    })
    assert.equal(adminPort, undefined)
  })

  const CONTRADICTIONS: readonly (readonly [environment: Record<string, string>, message: string])[] = [
    [
      { PLANT_STORE_TOKENS: 'a:b', PLANT_STORE_TOKENS_FILE: 'x' },
      'PLANT_STORE_TOKENS and PLANT_STORE_TOKENS_FILE are both set; set only one of them',
    ],
    [
      { PLANT_STORE_URL: 'memory:', PLANT_STORE_URL_FILE: 'x' },
      'PLANT_STORE_URL and PLANT_STORE_URL_FILE are both set; set only one of them',
    ],
    [{ HOST: '/run/a', PORT: '3000' }, 'PORT must not be set if HOST is the path of a Unix socket'],
    [
      { PLANT_STORE_ADMIN_HOST: '::1' },
      'PLANT_STORE_ADMIN_HOST is set without PLANT_STORE_ADMIN_PORT; set both or neither',
    ],
    [{ PORT: '3000', PLANT_STORE_ADMIN_PORT: '3000' }, 'PLANT_STORE_ADMIN_PORT must be another port than PORT'],
    [{ PLANT_STORE_ADMIN_PORT: '3000' }, 'PLANT_STORE_ADMIN_PORT must be another port than PORT'],
  ]
  for (const [environment, message] of CONTRADICTIONS) {
    test(`${JSON.stringify(environment)} is rejected`, () => rejects(environment, message))
  }

  test('allow port 0 for both listeners', async () => {
    assert.equal((await readSettings({ PORT: '0', PLANT_STORE_ADMIN_PORT: '0' })).adminPort, 0)
  })

  test('do not allow several processes to share a port without sharing plants', async () => {
    const [major, minor] = process.versions.node.split('.').map(Number) as [number, number]
    const isSupported = major > 22 || (major === 22 && minor >= 12)
    const requirement = isSupported ? 'a store that processes can share: set PLANT_STORE_URL' : 'Node 22.12 or later'
    await rejects({ PLANT_STORE_REUSE_PORT: '1' }, `PLANT_STORE_REUSE_PORT requires ${requirement}`)
  })
})

suite('settings files', () => {
  test('contain a URL on one line', async (t) => {
    const settings = await readSettings({ PLANT_STORE_URL_FILE: createTempFile(t, '\ufeffsqlite:a.db\r\n') })
    assert.equal(settings.storeUrl.current(), 'sqlite:a.db')
    const expects = 'a URL such as memory:, sqlite:plants.db, postgres://user:password@host/database'
    for (const content of ['sqlite:a.db\nsqlite:b.db\n', '', 'plants.db']) {
      const environment = { PLANT_STORE_URL_FILE: createTempFile(t, content) }
      await rejects(environment, `PLANT_STORE_URL_FILE must be ${expects}`)
    }
  })

  test('must be UTF-8', (t) =>
    rejects(
      { PLANT_STORE_TOKENS_FILE: createTempFile(t, Buffer.from('ad\xe4:YWRh\n', 'latin1')) },
      'PLANT_STORE_TOKENS_FILE: the file must be UTF-8',
    ))

  test('must exist', () =>
    rejects(
      { PLANT_STORE_TOKENS_FILE: '/nowhere/tokens' },
      'PLANT_STORE_TOKENS_FILE: the file cannot be read (ENOENT)',
    ))

  test('must be regular files', (t) =>
    rejects(
      { PLANT_STORE_TOKENS_FILE: createTempDirectory(t) },
      'PLANT_STORE_TOKENS_FILE must be the path of a regular file or of a link to one',
    ))

  test('are rejected with the line of the first error', async (t) => {
    const path = join(createTempDirectory(t), 'tokens')
    writeFileSync(path, 'ada:YWRh\nada:YWRh\n')
    await rejects(
      { PLANT_STORE_TOKENS_FILE: path },
      'PLANT_STORE_TOKENS_FILE: line 2 repeats the token of an earlier entry',
    )
  })
})
