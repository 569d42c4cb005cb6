import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { helpText, readSettings, type Settings } from '../../../src/standalone/settings/settings.ts'
import { STORE_SCHEMES } from '../../../src/stores/open-store.ts'
import { settingError } from '../../support/program/setting-error.ts'
import { temporaryFile } from '../../support/temporary-file.ts'

type Environment = Readonly<Record<string, string>>

function messageOf(environment: Environment): string {
  return settingError(() => readSettings(environment))
}

suite('reads', () => {
  const rows: readonly [Environment, Partial<Settings>][] = [
    [{ HOST: `/${'a'.repeat(102)}` }, { host: `/${'a'.repeat(102)}` }],
    [{ PORT: '65535' }, { port: 65_535 }],
    [{ PLANT_STORE_SOCKET_MODE: '007' }, { socketMode: 7 }],
    [{ PLANT_STORE_MIGRATE: '0' }, { migrate: false }],
    [{ PLANT_STORE_ACCESS_LOG: '1' }, { accessLog: true }],
    [{ PLANT_STORE_STORE_TIMEOUT_MS: '2147483647' }, { storeTimeoutMs: 2_147_483_647 }],
    [{ PLANT_STORE_MAX_HEADER_BYTES: '8192' }, { maxHeaderBytes: 8192 }],
    [{ PLANT_STORE_CORS_ORIGINS: '*' }, { corsOrigins: '*' }],
    [
      { PLANT_STORE_ADMIN_PORT: '0', PLANT_STORE_ADMIN_HOST: '::1' },
      { adminPort: 0, adminHost: '::1' },
    ],
  ]
  for (const [environment, expected] of rows) {
    test(Object.entries(environment).flat().join('='), () => {
      assert.deepEqual(readSettings(environment), { ...readSettings({}), ...expected })
    })
  }
})

const examples = STORE_SCHEMES.filter(({ lacks }) => lacks === undefined).map(({ example }) => example)
const url = `PLANT_STORE_URL takes a URL like ${examples.join(' or ')}: where the plants are kept`

suite('refuses, and says what the variable takes', () => {
  const host = 'the host name or address to listen on, or the absolute path of a Unix socket, of 103 bytes at most'
  const port = 'a whole number from 0 to 65535: the port to listen on; 0 takes a free one'
  const rows: readonly [name: string, values: readonly string[], takes: string][] = [
    ['HOST', ['', `/${'a'.repeat(101)}ä`], host],
    ['PORT', ['', '65536', '-1', '+1', '01', '0x50', '8e1', '80.0', ' 80', '80\n', '٨٠'], port],
    ['PLANT_STORE_MAX_BODY_BYTES', ['67108865'], 'a whole number from 1 to 67108864: the most bytes of a body'],
    ['PLANT_STORE_MAX_LIMIT', ['0', '2147483648'], 'a whole number from 1 to 2147483647: the most plants of a list'],
    ['PLANT_STORE_ACCESS_LOG', ['true', ''], '1 or 0: whether a line is logged for each response'],
    [
      'PLANT_STORE_SOCKET_MODE',
      ['66', '0660', '668'],
      'permissions in octal such as 660: who may connect to the Unix socket',
    ],
  ]
  for (const [name, values, takes] of rows) {
    for (const value of values) {
      test(`${name}=${JSON.stringify(value)}`, () =>
        assert.equal(messageOf({ [name]: value }), `${name} takes ${takes}`))
    }
  }

  test('PLANT_STORE_URL with a password', () => {
    assert.equal(messageOf({ PLANT_STORE_URL: 'mysql://ada:secret@db/plants' }), url)
  })
})

for (const example of examples) {
  test(`PLANT_STORE_URL takes ${example}, which the help shows`, () => {
    assert.ok(helpText().includes(example))
    assert.equal(readSettings({ PLANT_STORE_URL: example }).storeUrl, example)
  })
}

suite('a variable that begins like a setting and is none', () => {
  const rows: readonly [name: string, nearest: string][] = [
    ['PLANT_STORE_TOKEN', 'PLANT_STORE_TOKENS'],
    ['PLANT_STORE_TOKEN_FILE', 'PLANT_STORE_TOKENS_FILE'],
    ['PLANT_STORE_DATABASE_URL', 'PLANT_STORE_URL'],
    ['PLANT_STORE_PORT', 'PORT'],
    ['PLANT_STORE_HOST', 'HOST'],
    ['PLANT_STORE_tokens', 'PLANT_STORE_TOKENS'],
    ['PLANT_STORE_PG_POOL_SIZE', 'PLANT_STORE_POSTGRES_POOL_SIZE'],
    ['PLANT_STORE_SERVICE_HOST_NAME', 'PLANT_STORE_ADMIN_HOST'],
  ]
  for (const [name, nearest] of rows) {
    test(`${name} is refused, and ${nearest} is named`, () => {
      assert.equal(messageOf({ [name]: 'secret' }), `${name} is no setting; the nearest one is ${nearest}`)
    })
  }

  test('is refused before another one is read that is wrong', () => {
    assert.match(messageOf({ PORT: 'http', PLANT_STORE_TOKEN: 'secret' }), /^PLANT_STORE_TOKEN is no setting/)
  })

  test('is taken if Kubernetes made it of a service called plant-store, or plant-store-admin', () => {
    const links = {
      PLANT_STORE_SERVICE_HOST: '10.0.0.1',
      PLANT_STORE_SERVICE_PORT: '80',
      PLANT_STORE_SERVICE_PORT_HTTP: '80',
      PLANT_STORE_PORT: 'tcp://10.0.0.1:80',
      PLANT_STORE_PORT_80_TCP: 'tcp://10.0.0.1:80',
      PLANT_STORE_PORT_80_TCP_PROTO: 'tcp',
      PLANT_STORE_PORT_80_TCP_PORT: '80',
      PLANT_STORE_PORT_80_TCP_ADDR: '10.0.0.1',
      PLANT_STORE_ADMIN_SERVICE_HOST: '10.0.0.2',
      PLANT_STORE_ADMIN_PORT: 'tcp://10.0.0.2:9090',
    }
    assert.deepEqual(readSettings(links), readSettings({}))
  })

  test('is read as a setting if it has the name of one, and no such URL or no such name', () => {
    assert.match(messageOf({ PLANT_STORE_ADMIN_PORT: 'http+tcp://10.0.0.2' }), /^PLANT_STORE_ADMIN_PORT takes /)
    assert.match(messageOf({ PLANT_STORE_URL: 'tcp://10.0.0.1:80' }), /^PLANT_STORE_URL takes /)
  })

  test('is no concern of ours if it begins otherwise', () => {
    assert.deepEqual(readSettings({ PLANT_STOREY: '1', MY_PLANT_STORE_TOKEN: '1', PATH: '' }), readSettings({}))
  })
})

test('PORT is refused if HOST is a path', () => {
  const message = messageOf({ HOST: '/run/plants.sock', PORT: '3000' })
  assert.equal(message, 'PORT must not be set if HOST is the path of a Unix socket')
})

test('PLANT_STORE_ADMIN_HOST takes no path', () => {
  const message = messageOf({ PLANT_STORE_ADMIN_PORT: '0', PLANT_STORE_ADMIN_HOST: '/run/plants.sock' })
  assert.match(message, /^PLANT_STORE_ADMIN_HOST takes /)
})

suite('PLANT_STORE_REUSE_PORT is refused', () => {
  const sharing = { PLANT_STORE_REUSE_PORT: '1' }
  const shared = { ...sharing, PLANT_STORE_URL: 'sqlite:plants.db' }
  const rows: readonly [why: string, environment: Environment, version: string, problem: string][] = [
    ['on a Node without it', shared, '22.11.0', 'needs Node 22.12 or later, and this is Node 22.11.0'],
    ['with PORT=0', { ...shared, PORT: '0' }, '22.12.0', 'needs a PORT other than 0'],
    ['with a Unix socket', { ...shared, HOST: '/run/plants.sock' }, '23.1.0', 'needs a PORT other than 0'],
  ]
  for (const [why, environment, version, problem] of rows) {
    test(why, () => {
      const message = `PLANT_STORE_REUSE_PORT ${problem}`
      assert.throws(() => readSettings(environment, version), { name: 'SettingError', message })
    })
  }

  for (const url of ['memory:', 'sqlite::memory:', 'sqlite:file:plants?mode=memory']) {
    test(`with ${url}, also in a file`, (t) => {
      const message = /^PLANT_STORE_REUSE_PORT needs a store that programs can share, and in this one each would have /
      for (const place of [{ PLANT_STORE_URL: url }, { PLANT_STORE_URL_FILE: temporaryFile(t, url) }]) {
        assert.throws(() => readSettings({ ...sharing, ...place }, '24.0.0'), { name: 'SettingError', message })
      }
    })
  }

  for (const url of ['sqlite:plants.db', 'postgres://ada@host/plants']) {
    test(`not with ${url}`, () => void readSettings({ ...sharing, PLANT_STORE_URL: url }, '22.12.0'))
  }
})

test('PLANT_STORE_ADMIN_HOST is refused if there is no admin port', () => {
  const message = messageOf({ PLANT_STORE_ADMIN_HOST: '127.0.0.1' })
  assert.equal(message, 'PLANT_STORE_ADMIN_HOST needs PLANT_STORE_ADMIN_PORT beside it')
})

suite('PLANT_STORE_URL_FILE', () => {
  for (const content of ['sqlite:plants.db', 'sqlite:plants.db\n', 'sqlite:plants.db\r\n']) {
    test(`takes a file with ${JSON.stringify(content)}`, (t) => {
      const environment = { PLANT_STORE_URL_FILE: temporaryFile(t, content) }
      assert.equal(readSettings(environment).storeUrlFile?.value, 'sqlite:plants.db')
    })
  }

  const takes = 'PLANT_STORE_URL_FILE takes a file that holds the value of PLANT_STORE_URL, in place of it'

  test('refuses a file with something else, and quotes nothing of it', (t) => {
    const message = messageOf({ PLANT_STORE_URL_FILE: temporaryFile(t, 'mysql://ada:secret@db/plants\n') })
    assert.equal(message, `${takes}, and this one does not: ${url}`)
  })

  test('refuses a file that begins with a blank line', (t) => {
    const message = messageOf({ PLANT_STORE_URL_FILE: temporaryFile(t, '\nmemory:') })
    assert.match(message, /^PLANT_STORE_URL_FILE takes a file /)
  })

  test('refuses to be set beside PLANT_STORE_URL', () => {
    assert.equal(
      messageOf({ PLANT_STORE_URL: 'memory:', PLANT_STORE_URL_FILE: '/nowhere/url' }),
      'PLANT_STORE_URL_FILE and PLANT_STORE_URL are both set: set only one of them',
    )
  })
})

suite('the help', () => {
  test('shows variables that are settings, and says what each takes', () => {
    const names = [...helpText().matchAll(/^ {2}([A-Z][A-Z_]+)(?:=\S+)?\n {6}\S/gm)].map(([, name]) => name!)
    assert.ok(names.length > 15)
    for (const name of names) {
      const beside = name === 'PLANT_STORE_ADMIN_HOST' ? { PLANT_STORE_ADMIN_PORT: '0' } : {}
      const wrong = name.endsWith('HOST') ? '' : '\0'
      assert.match(messageOf({ ...beside, [name]: wrong }), new RegExp(`^${name} takes `))
    }
  })

  test('says what each variable is for', () => {
    assert.doesNotMatch(helpText(), / $/m)
    assert.match(helpText(), /^ {6}owner:token, .*; by default a random token for the owner demo$/m)
  })
})
