import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { resolve } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { formatHelp, readSettings, type Settings } from '../../../src/standalone/settings/settings.ts'
import { STORE_SCHEMES } from '../../../src/stores/open-store.ts'
import { createTempFile } from '../../support/temp-files.ts'

type Environment = Readonly<Record<string, string>>

function assertRefused(environment: Environment, message: string | RegExp, version?: string): void {
  assert.throws(() => readSettings(environment, version), { name: 'SettingError', message })
}

const urlExamples = STORE_SCHEMES.filter(({ unavailableReason }) => unavailableReason === undefined).map(
  ({ example }) => example,
)
const urlMessage = `PLANT_STORE_URL must be a URL such as ${urlExamples.join(' or ')}`

suite('readSettings', () => {
  const rows: readonly [Environment, Partial<Settings>][] = [
    [{ HOST: `/${'a'.repeat(102)}` }, { host: `/${'a'.repeat(102)}` }],
    [{ PORT: '65535' }, { port: 65_535 }],
    [{ PLANT_STORE_SOCKET_MODE: '007' }, { socketMode: 7 }],
    [{ PLANT_STORE_ACCESS_LOG: '1' }, { accessLog: true }],
    [{ PLANT_STORE_STORE_TIMEOUT_MS: '2147483647' }, { storeTimeoutMs: 2_147_483_647 }],
    [{ PLANT_STORE_MAX_HEADER_BYTES: '8192' }, { maxHeaderBytes: 8192 }],
    [
      { PLANT_STORE_ADMIN_PORT: '0', PLANT_STORE_ADMIN_HOST: '::1' },
      { adminPort: 0, adminHost: '::1' },
    ],
    [{ PLANT_STORE_CORS_ORIGINS: '*' }, { corsOrigins: '*' }],
    [
      { PLANT_STORE_CORS_ORIGINS: 'http://localhost:8080 , https://xn--bcher-kva.example' },
      { corsOrigins: new Set(['http://localhost:8080', 'https://xn--bcher-kva.example']) },
    ],
    [
      { PLANT_STORE_CORS_ORIGINS: 'http://[::1]:8080,capacitor://localhost' },
      { corsOrigins: new Set(['http://[::1]:8080', 'capacitor://localhost']) },
    ],
    ...urlExamples.map((example): (typeof rows)[number] => [{ PLANT_STORE_URL: example }, { storeUrl: example }]),
    [{ PLANT_STOREY: '1', MY_PLANT_STORE_TOKEN: '1', PATH: '' }, {}],
  ]
  for (const [environment, expected] of rows) {
    test(`parses ${Object.entries(environment).flat().join('=')}`, () => {
      assert.deepEqual(readSettings(environment), { ...readSettings({}), ...expected })
    })
  }

  test('ignores the variables that Kubernetes sets for a service named plant-store', () => {
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

  test('strips the byte order mark and the newline from the URL in a file', (t) => {
    for (const start of ['', '\ufeff']) {
      for (const end of ['', '\n', '\r\n']) {
        const environment = { PLANT_STORE_URL_FILE: createTempFile(t, `${start}sqlite:plants.db${end}`) }
        assert.equal(readSettings(environment).storeUrlFile?.value, 'sqlite:plants.db')
      }
    }
  })

  test('strips a CR at the end of origins and tokens', () => {
    const { corsOrigins, tokens } = readSettings({
      PLANT_STORE_CORS_ORIGINS: 'https://app.example\r',
      PLANT_STORE_TOKENS: 'ada:YWRh read\r',
    })
    assert.deepEqual(corsOrigins, new Set(['https://app.example']))
    assert.deepEqual([...tokens!.values()], [{ owner: 'ada', access: 'read' }])
    assert.equal(readSettings({ PLANT_STORE_CORS_ORIGINS: '*\r' }).corsOrigins, '*')
  })
})

const MERGED = ' (Unicode replacement collision)'

suite('readSettings rejects invisible and stray characters', () => {
  const values: readonly [name: string, value: string][] = [
    ['HOST', '127.0.0.1'],
    ['HOST', '/run/plants.sock'],
    ['PORT', '3000'],
    ['PLANT_STORE_TOKENS_FILE', '/etc/tokens'],
    ['PLANT_STORE_URL', 'memory:'],
    ['PLANT_STORE_URL', 'sqlite:plants.db'],
    ['PLANT_STORE_URL', 'postgres://ada:secret@db/plants'],
    ['PLANT_STORE_URL_FILE', '/etc/url'],
    ['PLANT_STORE_MIGRATE', '1'],
    ['PLANT_STORE_MAX_LIMIT', '10'],
    ['PLANT_STORE_SOCKET_MODE', '660'],
    ['PLANT_STORE_ADMIN_HOST', '::1'],
  ]
  const strays: readonly [wrap: (value: string) => string, shown: string, attack?: string][] = [
    [(value) => `${value}\r`, String.raw`"\r"`],
    [(value) => `${value}\n`, String.raw`"\n"`],
    [(value) => `\t${value}`, String.raw`"\t"`],
    [(value) => `${value} `, '" "'],
    [(value) => `\u00a0${value}`, String.raw`"\u00a0"`],
    [(value) => `"${value}"`, String.raw`"\""`],
    [(value) => `'${value}'`, `"'"`],
    [(value) => `${value}\u007f`, String.raw`"\u007f"`],
    [(value) => `${value}\u0085`, String.raw`"\u0085"`],
    [(value) => `${value.slice(0, 1)}\u0007${value.slice(1)}`, String.raw`"\u0007"`],
    [(value) => `\ufeff${value}`, String.raw`"\ufeff"`],
    [(value) => `${value.slice(0, 1)}\ufffd${value.slice(1)}`, String.raw`"\ufffd"`, MERGED],
    [(value) => `${value.slice(0, 1)}\u200b${value.slice(1)}`, String.raw`"\u200b"`],
    [(value) => `${value}\u200e`, String.raw`"\u200e"`],
    [(value) => `“${value}”`, String.raw`"\u201c"`],
    [(value) => `${value} # comment`, '" #"'],
  ]
  for (const [name, value] of values) {
    for (const [wrap, shown, attack = ''] of strays) {
      test(`${shown} in ${name}=${value}${attack}`, () => {
        const beside = name === 'PLANT_STORE_ADMIN_HOST' ? { PLANT_STORE_ADMIN_PORT: '0' } : {}
        const message = new RegExp(`^${name} must be [^]*; remove ${shown.replaceAll('\\', '\\\\')} from its value$`)
        assertRefused({ ...beside, [name]: wrap(value) }, message)
      })
    }
  }

  for (const [what, content, problem] of [
    ['two lines', 'sqlite:a.db\nsqlite:b.db\n', 'must contain only one line'],
    ['an empty second line', 'sqlite:a.db\n\n', 'must contain only one line'],
    ['a URL in cp1252 (Unicode replacement collision)', Buffer.from('sqlite:\xe9.db', 'latin1'), 'must be UTF-8'],
    ['a URL in UTF-16', Buffer.from('\ufeffsqlite:a.db', 'utf16le'), 'must be UTF-8'],
  ] as const) {
    test(`${what} in PLANT_STORE_URL_FILE`, (t) => {
      assertRefused({ PLANT_STORE_URL_FILE: createTempFile(t, content) }, `PLANT_STORE_URL_FILE: the file ${problem}`)
    })
  }

  for (const [content, attack] of [
    ['sqlite:a.db\r', ''],
    ['sqlite:a\u0000.db\n', ''],
    ['sqlite:a.db \n', ''],
    ['"memory:"', ''],
    ['sqlite:\ufffd.db', MERGED],
  ] as const) {
    test(`${JSON.stringify(content)} in PLANT_STORE_URL_FILE${attack}`, (t) => {
      const message =
        /^PLANT_STORE_URL_FILE: .* is invalid: PLANT_STORE_URL must be [^]*; remove "[^]+" from its value$/
      assertRefused({ PLANT_STORE_URL_FILE: createTempFile(t, content) }, message)
    })
  }

  test(
    'settings that are not UTF-8 are rejected (Unicode replacement collision)',
    { skip: process.platform !== 'linux' },
    () => {
      for (const [name, value] of [
        ['PLANT_STORE_TOKENS', String.raw`Andr\351:tokA,Andr\350:tokB`],
        ['PLANT_STORE_URL', String.raw`sqlite:\351.db`],
        ['HOST', String.raw`/tmp/\351.sock`],
        ['PLANT_STORE_CORS_ORIGINS', String.raw`https://\351.example`],
      ] as const) {
        // Node encodes the environment of a child process as UTF-8, so the shell sets the variable.
        const script = `export ${name}="$(printf '${value}')" && exec "$@"`
        const command = ['-c', script, 'sh', process.execPath, ...process.execArgv, 'src/server.ts']
        const { status, stderr } = spawnSync('sh', command, { encoding: 'utf8', env: { PATH: process.env['PATH'] } })
        assert.deepEqual([status, stderr.split('\n').length], [2, 2], stderr)
        assert.match(stderr, new RegExp(`^plant-store: ${name}(?:: entry 1)? (?:must be|contains U\\+FFFD)`))
      }
    },
  )
})

suite('a node:cluster worker', { timeout: 60_000 }, () => {
  const container = `import { pathToFileURL } from 'node:url'
    await import(pathToFileURL(process.env.pm_exec_path).href)`

  /** Runs the program in a worker, which prints its exit status, or reports that it is listening. */
  function runWorker(
    t: TestContext,
    environment: Environment,
    isContained: boolean,
  ): { stdout: string; stderr: string } {
    const exec = isContained ? createTempFile(t, container, 'container.mjs') : resolve('src/server.ts')
    const primary = `
      import cluster from 'node:cluster'
      cluster.setupPrimary({ exec: ${JSON.stringify(exec)} })
      const worker = cluster.fork()
      worker.on('listening', () => { console.log('listening'); worker.process.kill('SIGKILL') })
      worker.on('exit', (status) => { if (status !== null) console.log(status) })`
    const args = [...process.execArgv, createTempFile(t, primary, 'primary.mjs')]
    const { PATH, NODE_V8_COVERAGE } = process.env
    const env = { PATH, NODE_V8_COVERAGE, PORT: '0', pm_exec_path: resolve('src/server.ts'), ...environment }
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env })
    return { stdout, stderr }
  }

  const problem = 'must be a store that processes can share, because this is a node:cluster (PM2) worker'
  for (const [how, isContained] of [
    ['that imports the standalone server', false],
    ['started by PM2', true],
  ] as const) {
    test(`${how} exits with status 2 for an in-memory store`, (t) => {
      const expected = { stdout: '2\n', stderr: `plant-store: PLANT_STORE_URL ${problem}\n` }
      assert.deepEqual(runWorker(t, {}, isContained), expected)
    })

    test(`${how} accepts a shared store`, (t) => {
      const environment = { PLANT_STORE_URL: 'postgres://ada@127.0.0.1:1/plants' }
      assert.match(runWorker(t, environment, isContained).stdout, /^listening$/m)
    })
  }

  test('exits with status 2 if a URL file refers to an in-memory store', (t) => {
    for (const url of ['memory:', 'sqlite::memory:', 'sqlite:file:plants?mode=memory']) {
      const expected = { stdout: '2\n', stderr: `plant-store: PLANT_STORE_URL_FILE ${problem}\n` }
      assert.deepEqual(runWorker(t, { PLANT_STORE_URL_FILE: createTempFile(t, url) }, false), expected)
    }
  })
})

suite('the error message for an invalid setting states which values are accepted', () => {
  const host = 'a host name, an IP address, or the absolute path of a Unix socket of at most 103 bytes'
  const port = 'an integer from 0 to 65535'
  const mode = 'three octal digits such as 660'
  const origins = 'comma-separated origins such as https://app.example, or *'
  const noOrigins = [
    ...['', 'null', 'app.example', 'https://app.example/', 'https://app.example/x', 'https://App.example', 'file://'],
    ...['HTTPS://app.example', 'https://app.example:443', 'https://bücher.example', 'https://*.app.example'],
    ...['https://ada@app.example', 'https://app.example,*', 'https://app.example,', 'https://app.example?'],
    ...['https://app.example https://b.example', 'https://app.example:99999'],
  ]
  for (const [name, values, expected] of [
    ['HOST', ['', `/${'a'.repeat(101)}ä`], host],
    ['PORT', ['', '65536', '-1', '+1', '01', '0x50', '8e1', '80.0', '٨٠'], port],
    ['PLANT_STORE_MAX_BODY_BYTES', ['67108865'], 'an integer from 1 to 67108864'],
    ['PLANT_STORE_MAX_LIMIT', ['0', '2147483648'], 'an integer from 1 to 2147483647'],
    ['PLANT_STORE_ACCESS_LOG', ['true', ''], '1 or 0'],
    ['PLANT_STORE_SOCKET_MODE', ['66', '0660', '668'], mode],
    ['PLANT_STORE_CORS_ORIGINS', noOrigins, origins],
  ] as const) {
    test(name, () => {
      for (const value of values) assertRefused({ [name]: value }, `${name} must be ${expected}`)
    })
  }

  for (const [environment, message] of [
    [{ PLANT_STORE_URL: 'mysql://ada:secret@db/plants' }, urlMessage],
    [{ HOST: '/run/a.sock', PORT: '3000' }, 'PORT must not be set if HOST is the path of a Unix socket'],
    [{ PLANT_STORE_ADMIN_PORT: '0', PLANT_STORE_ADMIN_HOST: '/run/a.sock' }, /^PLANT_STORE_ADMIN_HOST must be /],
    [
      { PLANT_STORE_ADMIN_HOST: '::1' },
      'PLANT_STORE_ADMIN_HOST is set without PLANT_STORE_ADMIN_PORT; set both or neither',
    ],
    [
      { PLANT_STORE_URL: 'memory:', PLANT_STORE_URL_FILE: '/nowhere' },
      /^PLANT_STORE_URL_FILE and PLANT_STORE_URL are both set; set only one of them$/,
    ],
    [
      { PLANT_STORE_TOKENS: 'bob:Ym9i', PLANT_STORE_TOKENS_FILE: '/nowhere' },
      /^PLANT_STORE_TOKENS_FILE and PLANT_STORE_TOKENS are both set; set only one of them$/,
    ],
    // Unknown settings are reported before invalid values.
    [{ PORT: 'http', PLANT_STORE_TOKEN: 'secret' }, /^unknown setting PLANT_STORE_TOKEN; /],
    // These values or names differ from those that Kubernetes sets.
    [{ PLANT_STORE_ADMIN_PORT: 'http+tcp://10.0.0.2' }, /^PLANT_STORE_ADMIN_PORT must be /],
    [{ PLANT_STORE_URL: 'tcp://10.0.0.1:80' }, /^PLANT_STORE_URL must be /],
  ] as const) {
    test(Object.entries(environment).flat().join('='), () => assertRefused(environment, message))
  }

  test('the error message for PLANT_STORE_URL_FILE does not quote the content of the file', (t) => {
    for (const content of ['mysql://ada:secret@db/plants\n', '\n', '']) {
      const message = `PLANT_STORE_URL_FILE: the content of the file is invalid: ${urlMessage}`
      assertRefused({ PLANT_STORE_URL_FILE: createTempFile(t, content) }, message)
    }
  })
})

for (const [name, nearest] of [
  ['PLANT_STORE_TOKEN', 'PLANT_STORE_TOKENS'],
  ['PLANT_STORE_TOKEN_FILE', 'PLANT_STORE_TOKENS_FILE'],
  ['PLANT_STORE_DATABASE_URL', 'PLANT_STORE_URL'],
  ['PLANT_STORE_PORT', 'PORT'],
  ['PLANT_STORE_tokens', 'PLANT_STORE_TOKENS'],
  ['plant_store_url', 'PLANT_STORE_URL'],
  ['PLANT_STORE_PG_POOL_SIZE', 'PLANT_STORE_POSTGRES_POOL_SIZE'],
  ['PLANT_STORE_SERVICE_HOST_NAME', 'PLANT_STORE_ADMIN_HOST'],
] as const) {
  test(`the error message for the unknown setting ${name} suggests ${nearest}`, () => {
    assertRefused({ [name]: 'secret' }, `unknown setting ${name}; did you mean ${nearest}?`)
  })
}

for (const [start, name, end, shown] of [
  ['\ufeff', 'PLANT_STORE_URL', '', String.raw`"\ufeffPLANT_STORE_URL"`],
  ['\ufeff', 'PORT', '', String.raw`"\ufeffPORT"`],
  ['', 'HOST', '\r', String.raw`"HOST\r"`],
  ['\u00a0', 'PLANT_STORE_TOKEN', ' ', String.raw`"\u00a0PLANT_STORE_TOKEN "`],
] as const) {
  test(`the variable name ${shown} is rejected`, () => {
    assertRefused({ [start + name + end]: 'secret' }, `the name of ${name} contains invisible characters: ${shown}`)
  })
}

suite('PLANT_STORE_REUSE_PORT', () => {
  const sharing = { PLANT_STORE_REUSE_PORT: '1' }
  const shared = { ...sharing, PLANT_STORE_URL: 'sqlite:plants.db' }
  for (const [why, environment, version, problem] of [
    ['on a Node version without reusePort', shared, '22.11.0', 'Node 22.12 or later; this is Node 22.11.0'],
    ['with PORT=0', { ...shared, PORT: '0' }, '22.12.0', 'a TCP port other than 0'],
    ['with a Unix socket', { ...shared, HOST: '/run/plants.sock' }, '23.1.0', 'a TCP port other than 0'],
  ] as const) {
    test(`is rejected ${why}`, () => assertRefused(environment, `PLANT_STORE_REUSE_PORT requires ${problem}`, version))
  }

  test('PLANT_STORE_REUSE_PORT requires a store that processes can share', (t) => {
    for (const url of ['memory:', 'sqlite::memory:', 'sqlite:file:plants?mode=memory']) {
      for (const place of [{ PLANT_STORE_URL: url }, { PLANT_STORE_URL_FILE: createTempFile(t, url) }]) {
        assertRefused({ ...sharing, ...place }, /^PLANT_STORE_REUSE_PORT requires a store that /, '24.0.0')
      }
    }
    for (const url of ['sqlite:plants.db', 'postgres://ada@host/plants']) {
      assert.equal(readSettings({ ...sharing, PLANT_STORE_URL: url }, '22.12.0').reusePort, true)
    }
  })
})

test('--help lists every setting with a description, and an example URL for each store', () => {
  const help = formatHelp()
  const names = [...help.matchAll(/^ {2}([A-Z][A-Z_]+)(?:=\S+)?\n {6}\S/gm)].map(([, name]) => name!)
  assert.ok(names.length > 15)
  for (const name of names) {
    const beside = name === 'PLANT_STORE_ADMIN_HOST' ? { PLANT_STORE_ADMIN_PORT: '0' } : {}
    const wrong = name.endsWith('HOST') ? '' : '\0'
    assertRefused({ ...beside, [name]: wrong }, new RegExp(`^${name}(?:: entry 1)? must be `))
  }
  assert.doesNotMatch(help, / $/m)
  assert.match(help, /^ {6}the bearer tokens .* generates a demo token \(.*owner:token, .*\)$/m)
  for (const example of urlExamples) assert.ok(help.includes(example))
})
