import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { helpText, readSettings, type Settings } from '../../src/standalone/settings.ts'
import { SettingError } from '../../src/standalone/variables.ts'
import { STORE_SCHEMES } from '../../src/stores/open-store.ts'

type Environment = Readonly<Record<string, string>>

function temporaryFile(t: TestContext, content: string): string {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'tokens')
  writeFileSync(path, content)
  return path
}

function messageOf(environment: Environment): string {
  let message = ''
  assert.throws(
    () => readSettings(environment),
    (error) => {
      message = (error as Error).message
      return error instanceof SettingError
    },
  )
  return message
}

test('has a default for every setting', () => {
  assert.deepEqual(readSettings({}), {
    host: '127.0.0.1',
    port: 3000,
    tokens: undefined,
    tokensFile: undefined,
    storeUrl: 'memory:',
    maxBodyBytes: 65_536,
    maxLimit: undefined,
    storeTimeoutMs: 10_000,
    accessLog: false,
    page: true,
    headersTimeoutMs: 10_000,
    requestTimeoutMs: 30_000,
    keepAliveTimeoutMs: 5000,
    stallTimeoutMs: 30_000,
    checkIntervalMs: 500,
    drainDelayMs: 0,
    drainTimeoutMs: 10_000,
    maxHeaderBytes: 16_384,
    maxConnections: undefined,
  })
})

suite('reads', () => {
  const rows: readonly [Environment, Partial<Settings>][] = [
    [{ HOST: '::1' }, { host: '::1' }],
    [{ PORT: '0' }, { port: 0 }],
    [{ PORT: '65535' }, { port: 65_535 }],
    [{ PLANT_STORE_URL: 'sqlite:plants.db' }, { storeUrl: 'sqlite:plants.db' }],
    [{ PLANT_STORE_URL: 'postgres://ada@db/plants' }, { storeUrl: 'postgres://ada@db/plants' }],
    [{ PLANT_STORE_URL: 'postgresql://ada@db/plants' }, { storeUrl: 'postgresql://ada@db/plants' }],
    [{ PLANT_STORE_MAX_BODY_BYTES: '1' }, { maxBodyBytes: 1 }],
    [{ PLANT_STORE_MAX_LIMIT: '100' }, { maxLimit: 100 }],
    [{ PLANT_STORE_STORE_TIMEOUT_MS: '2147483647' }, { storeTimeoutMs: 2_147_483_647 }],
    [{ PLANT_STORE_ACCESS_LOG: '1' }, { accessLog: true }],
    [{ PLANT_STORE_ACCESS_LOG: '0' }, { accessLog: false }],
    [{ PLANT_STORE_PAGE: '0' }, { page: false }],
    [{ PLANT_STORE_PAGE: '1' }, { page: true }],
    [{ PLANT_STORE_HEADERS_TIMEOUT_MS: '1' }, { headersTimeoutMs: 1 }],
    [{ PLANT_STORE_REQUEST_TIMEOUT_MS: '2' }, { requestTimeoutMs: 2 }],
    [{ PLANT_STORE_KEEP_ALIVE_TIMEOUT_MS: '3' }, { keepAliveTimeoutMs: 3 }],
    [{ PLANT_STORE_STALL_TIMEOUT_MS: '4' }, { stallTimeoutMs: 4 }],
    [{ PLANT_STORE_CHECK_INTERVAL_MS: '5' }, { checkIntervalMs: 5 }],
    [{ PLANT_STORE_DRAIN_DELAY_MS: '0' }, { drainDelayMs: 0 }],
    [{ PLANT_STORE_DRAIN_DELAY_MS: '15000' }, { drainDelayMs: 15_000 }],
    [{ PLANT_STORE_DRAIN_TIMEOUT_MS: '6' }, { drainTimeoutMs: 6 }],
    [{ PLANT_STORE_MAX_HEADER_BYTES: '8192' }, { maxHeaderBytes: 8192 }],
    [{ PLANT_STORE_MAX_CONNECTIONS: '2000' }, { maxConnections: 2000 }],
  ]
  for (const [environment, expected] of rows) {
    test(Object.entries(environment).flat().join('='), () => {
      assert.deepEqual(readSettings(environment), { ...readSettings({}), ...expected })
    })
  }
})

suite('refuses, and says what the variable takes', () => {
  const port = 'PORT takes a whole number from 0 to 65535: the port to listen on; 0 takes a free one'
  const examples = new Set([...STORE_SCHEMES.values()].map(({ example }) => example))
  const url = `PLANT_STORE_URL takes a URL like ${[...examples].join(' or ')}: where the plants are kept`
  const accessLog = 'PLANT_STORE_ACCESS_LOG takes 1 or 0: whether a line is logged for each response'
  const maxLimit = 'PLANT_STORE_MAX_LIMIT takes a whole number from 1 to 2147483647: the most plants of a list'
  const drain =
    'PLANT_STORE_DRAIN_TIMEOUT_MS takes a whole number from 1 to 2147483647: ' +
    'milliseconds that a shutdown may take after that delay'
  const delay =
    'PLANT_STORE_DRAIN_DELAY_MS takes a whole number from 0 to 2147483647: ' +
    'milliseconds in which a shutdown only lets /readyz answer 503, before it drains'
  const rows: readonly [name: string, value: string, message: string][] = [
    ['HOST', '', 'HOST takes the host name or address to listen on'],
    ['PORT', '', port],
    ['PORT', '65536', port],
    ['PORT', '-1', port],
    ['PORT', '+1', port],
    ['PORT', '01', port],
    ['PORT', '0x50', port],
    ['PORT', '8e1', port],
    ['PORT', '80.0', port],
    ['PORT', ' 80', port],
    ['PORT', '80\n', port],
    ['PORT', '٨٠', port],
    ['PLANT_STORE_URL', '', url],
    ['PLANT_STORE_URL', 'memory', url],
    ['PLANT_STORE_URL', 'memory:plants', url],
    ['PLANT_STORE_URL', 'sqlite:', url],
    ['PLANT_STORE_URL', 'plants.db', url],
    ['PLANT_STORE_URL', 'postgres:ada', url],
    ['PLANT_STORE_URL', 'mysql://ada:secret@db/plants', url],
    ['PLANT_STORE_ACCESS_LOG', 'true', accessLog],
    ['PLANT_STORE_ACCESS_LOG', '', accessLog],
    ['PLANT_STORE_MAX_LIMIT', '0', maxLimit],
    ['PLANT_STORE_MAX_LIMIT', '2147483648', maxLimit],
    ['PLANT_STORE_DRAIN_TIMEOUT_MS', '10s', drain],
    ['PLANT_STORE_DRAIN_TIMEOUT_MS', '0', drain],
    ['PLANT_STORE_DRAIN_DELAY_MS', '-1', delay],
    ['PLANT_STORE_DRAIN_DELAY_MS', '2147483648', delay],
  ]
  for (const [name, value, message] of rows) {
    test(`${name}=${JSON.stringify(value)}`, () => {
      assert.equal(messageOf({ [name]: value }), message)
    })
  }
})

for (const [scheme, { example }] of STORE_SCHEMES) {
  suite(`PLANT_STORE_URL=${scheme}:…`, () => {
    test('takes the URL that the help shows', () => {
      assert.ok(helpText().includes(example))
      assert.equal(readSettings({ PLANT_STORE_URL: example }).storeUrl, example)
    })

    test('refuses what has another form', () => {
      for (const url of [scheme, `${scheme.toUpperCase()}:plants`, ` ${example}`]) {
        assert.match(messageOf({ PLANT_STORE_URL: url }), /^PLANT_STORE_URL takes a URL like /)
      }
    })
  })
}

test('refuses a URL whose scheme is the name of a member of every object', () => {
  for (const url of ['constructor:plants', '__proto__:plants', ':plants']) {
    assert.match(messageOf({ PLANT_STORE_URL: url }), /^PLANT_STORE_URL takes a URL like /)
  }
})

suite('PLANT_STORE_TOKENS', () => {
  test('takes owners with their tokens', () => {
    const { tokens } = readSettings({ PLANT_STORE_TOKENS: 'ada:YWRh,bob:Ym9i==' })
    assert.deepEqual(
      tokens,
      new Map([
        ['YWRh', 'ada'],
        ['Ym9i==', 'bob'],
      ]),
    )
  })

  test('divides an entry at its last colon, since a token has none', () => {
    assert.deepEqual(readSettings({ PLANT_STORE_TOKENS: 'urn:user:1:YWRh' }).tokens, new Map([['YWRh', 'urn:user:1']]))
  })

  test('lets one owner have several tokens', () => {
    const { tokens } = readSettings({ PLANT_STORE_TOKENS: 'ada:old,ada:new' })
    assert.deepEqual(
      tokens,
      new Map([
        ['old', 'ada'],
        ['new', 'ada'],
      ]),
    )
  })

  test('minds neither space around an entry nor blank entries', () => {
    assert.deepEqual(readSettings({ PLANT_STORE_TOKENS: ' ada:YWRh , , ' }).tokens, new Map([['YWRh', 'ada']]))
  })

  const form = 'takes owner:token, with a token of letters, digits and -._~+/, then any "="'
  const rows: readonly [entries: string, problem: string][] = [
    ['', 'takes at least one owner:token; there is none'],
    [' , ', 'takes at least one owner:token; there is none'],
    ['secret', `${form}; entry 1 is not of that form`],
    ['ada:YWRh,:secret', `${form}; entry 2 is not of that form`],
    ['ada:', `${form}; entry 1 is not of that form`],
    ['ada:sec ret', `${form}; entry 1 is not of that form`],
    ['ada:sec=ret', `${form}; entry 1 is not of that form`],
    ['ada:secrèt', `${form}; entry 1 is not of that form`],
    ['ada:secret,bob:secret', 'takes each token once; entry 2 repeats one'],
  ]
  for (const [entries, problem] of rows) {
    test(`refuses ${JSON.stringify(entries)} and quotes nothing of it`, () => {
      assert.equal(messageOf({ PLANT_STORE_TOKENS: entries }), `PLANT_STORE_TOKENS ${problem}`)
    })
  }
})

suite('PLANT_STORE_TOKENS_FILE', () => {
  test('takes a file with a token in each line, blank lines and CRLF included', (t) => {
    const path = temporaryFile(t, 'ada:YWRh\r\n\n  bob:Ym9i\n')
    const { tokensFile } = readSettings({ PLANT_STORE_TOKENS_FILE: path })
    assert.deepEqual(
      tokensFile,
      new Map([
        ['YWRh', 'ada'],
        ['Ym9i', 'bob'],
      ]),
    )
  })

  test('names the line that is wrong', (t) => {
    const path = temporaryFile(t, 'ada:YWRh\n\nbob\n')
    const message = messageOf({ PLANT_STORE_TOKENS_FILE: path })
    assert.match(message, /^PLANT_STORE_TOKENS_FILE takes owner:token, .*; line 3 is not of that form$/)
  })

  test('refuses an owner with U+0000, which no store could keep', (t) => {
    const path = temporaryFile(t, 'a\0da:YWRh')
    assert.match(messageOf({ PLANT_STORE_TOKENS_FILE: path }), /; line 1 is not of that form$/)
  })

  test('refuses a file that cannot be read', () => {
    assert.equal(
      messageOf({ PLANT_STORE_TOKENS_FILE: '/nowhere/tokens' }),
      'PLANT_STORE_TOKENS_FILE takes a file of owner:token lines, in place of PLANT_STORE_TOKENS; ' +
        'the file cannot be read (ENOENT)',
    )
  })

  test('refuses to be set beside PLANT_STORE_TOKENS', (t) => {
    const path = temporaryFile(t, 'ada:YWRh')
    assert.equal(
      messageOf({ PLANT_STORE_TOKENS: 'bob:Ym9i', PLANT_STORE_TOKENS_FILE: path }),
      'PLANT_STORE_TOKENS_FILE and PLANT_STORE_TOKENS are both set: set only one of them',
    )
  })
})

test('the help names every variable that is read, with its default', () => {
  const read: string[] = []
  readSettings(new Proxy({}, { get: (_, name) => void read.push(String(name)) }))
  const help = helpText()
  assert.ok(read.length > 15)
  for (const name of read) assert.match(help, new RegExp(`^  ${name}(=\\S+)?\\n      \\S`, 'm'))
  assert.match(help, /^ {2}PORT=3000$/m)
})
