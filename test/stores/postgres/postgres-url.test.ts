import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Client } from 'pg'
import { createClientClass } from '../../../src/stores/postgres/driver.ts'
import { isSameDatabase, parsePostgresUrl } from '../../../src/stores/postgres/postgres-url.ts'
import { createTempFile } from '../../support/temp-files.ts'

suite('a connection URL is converted to driver options', () => {
  const compatible = 'uselibpqcompat=true'
  const verifyFull = `sslmode=verify-full&${compatible}`
  const cases: [string, string][] = [
    ['postgres://ann:secret@host/plants', 'postgres://ann:secret@host/plants'],
    ['postgresql://ann@[::1]:6432/plants', 'postgresql://ann@[::1]:6432/plants'],
    ['postgres://ann@[fe80::1%25eth0]:6432/plants', 'postgres://ann@[fe80::1]:6432/plants?host=fe80%3A%3A1%25eth0'],
    [
      'postgres://ann:s@[fe80::1%eth0]/plants?ssl=true',
      `postgres://ann:s@[fe80::1]/plants?host=fe80%3A%3A1%25eth0&sslmode=require&${compatible}`,
    ],
    ['postgres://[::1%25lo]/plants?host=::1', 'postgres://[::1]/plants?host=::1'],
    ['postgres://[a%25b]:[c%25d]@host/plants', 'postgres://%5Ba%25b%5D:%5Bc%25d%5D@host/plants'],
    ['postgres://%2Fvar%2Frun/plants', 'postgres://%2Fvar%2Frun/plants'],
    ['postgres:///plants?host=/run/postgresql', 'postgres:///plants?host=/run/postgresql'],
    ['postgres:///plants?host=/run&sslmode=require&sslrootcert=/a', 'postgres:///plants?host=%2Frun'],
    ['postgres://%2frun/plants?sslmode=verify-full', 'postgres://%2frun/plants'],
    ['postgres://%2Frun/plants?host=a&ssl=true', `postgres://%2Frun/plants?host=a&sslmode=require&${compatible}`],
    ['postgres://ann:s@/plants?host=/run/postgresql', 'postgres://ann:s@localhost/plants?host=/run/postgresql'],
    ['postgres://ann:p%40%23%2F@host/plants', 'postgres://ann:p%40%23%2F@host/plants'],
    ['postgres://ann:a,b,@host/plants', 'postgres://ann:a,b,@host/plants'],
    ['postgres://host/plants?sslmode=require', 'postgres://host/plants?sslmode=require&uselibpqcompat=true'],
    ['postgres://host/plants?target_session_attrs=read-write', 'postgres://host/plants'],
    ['postgres://host/plants?application_name=a', 'postgres://host/plants?application_name=a'],
    ['postgres://host/plants?ssl=true', 'postgres://host/plants?sslmode=require&uselibpqcompat=true'],
    ['postgres://host/plants?ssl=true&sslmode=verify-full', `postgres://host/plants?${verifyFull}`],
    ['postgres://host/plants?sslrootcert=system', `postgres://host/plants?${verifyFull}`],
    ['postgres://host/plants?sslrootcert=system&sslmode=verify-full', `postgres://host/plants?${verifyFull}`],
    ['postgres://host/plants?sslnegotiation=direct', `postgres://host/plants?sslnegotiation=direct&${verifyFull}`],
    ['postgres://ann:a+b@host/plants?password=c+d', 'postgres://ann:a+b@host/plants?password=c%2Bd'],
    ['postgres://host/plants?options=-c%20a%3Db', 'postgres://host/plants?options=-c%20a%3Db'],
    ['postgres://host/plants?port=65535', 'postgres://host/plants?port=65535'],
    ['postgres://host/other?dbname=pl%2Fants', 'postgres://host/pl%2Fants'],
    ['postgres:///plants?user=ann&password=s%40', 'postgres:///plants?user=ann&password=s%40'],
    [
      'postgres://host/plants?client_encoding=utf8&gssencmode=prefer&load_balance_hosts=disable&sslcompression=0&sslsni=1',
      'postgres://host/plants',
    ],
    ['postgres://host/plants?connect_timeout=5&channel_binding=require&keepalives=0', 'postgres://host/plants'],
  ]
  for (const [url, written] of cases) test(url, () => assert.equal(parsePostgresUrl(url).connectionString, written))
})

suite('the error for an invalid connection URL does not contain the password', () => {
  const form =
    'use the form postgres://user:password@host/database; in a password, write @ / ? # and % as %40 %2F %3F %23 and %25'
  const oneHost = 'the URL must have only one host; for several servers, use a proxy such as HAProxy, or a DNS name'
  const known =
    'supported parameters: application_name, channel_binding, client_encoding, connect_timeout, dbname, fallback_application_name, ' +
    'gssencmode, host, keepalives, keepalives_idle, load_balance_hosts, options, password, port, ssl, ' +
    'ssl_max_protocol_version, ssl_min_protocol_version, sslcert, sslcompression, sslcrl, sslkey, sslmode, sslnegotiation, ' +
    'sslpassword, sslrootcert, sslsni, target_session_attrs, user'
  const ampersand = 'unknown parameter, or a password that contains & (encode it as %26)'
  const cases: [string, string][] = [
    ['postgres://ann:p@ss#w0rd@host/plants', form],
    ['postgres://ann:1#w0rd@host/plants', form],
    ['postgres://ann:1/w0rd@host/plants', form],
    ['postgres://ann:1/w0rd://@host/plants', form],
    ['postgres://ann:1?w0rd@host/plants', form],
    ['postgres://ann:w0rd#@host/plants', form],
    ['postgres://ann:w0rd%@host/plants', form],
    ['postgres://ann:w0rd@host:port/plants', form],
    ['postgres://ann:w0rd@a,b/plants', oneHost],
    ['postgres://ann:w0rd@a:5432,b:5432/plants', oneHost],
    ['postgres://ann:w0rd@host/plants?host=a,b', oneHost],
    ['postgres://ann:w0rd@/plants?host=a%2Cb', oneHost],
    ['postgres://ann:w0rd@host/plants?port=5432,5433', 'port must be a number from 1 to 65535'],
    ['postgres://ann:w0rd@host/plants?port=65536', 'port must be a number from 1 to 65535'],
    ['postgres://ann:w0rd@host/plants?sslmod=require', `unknown parameter "sslmod"; ${known}`],
    ['postgres://ann@host/plants?password=1&w0rd', `${ampersand}; ${known}`],
    ['postgres://host/plants?sslpassword=1&w0rd=1', `${ampersand}; ${known}`],
    [
      'postgres://ann:w0rd@host/plants?sslmode=prefer',
      'sslmode must be one of: disable, require, verify-ca, verify-full',
    ],
    ['postgres://ann:w0rd@host/plants?sslnegotiation=w0rd', 'sslnegotiation must be one of: postgres, direct'],
    [
      'postgres://ann:w0rd@host/plants?target_session_attrs=any',
      'target_session_attrs must be one of: read-write, primary',
    ],
    ['postgres://host/plants?channel_binding=w0rd', 'channel_binding must be one of: disable, prefer, require'],
    ['postgres://host/plants?connect_timeout=2s', 'connect_timeout must be a number of seconds'],
    ['postgres://host/plants?keepalives_idle=-1', 'keepalives_idle must be a number of seconds'],
    ['postgres://host/plants?gssencmode=require', 'gssencmode must be one of: disable, prefer'],
    ['postgres://host/plants?client_encoding=latin1', 'client_encoding must be one of: auto, utf8, UTF8, UTF-8'],
    [
      'postgres://host/plants?ssl_min_protocol_version=TLSv1.3&ssl_max_protocol_version=TLSv1.2',
      'ssl_min_protocol_version is higher than ssl_max_protocol_version',
    ],
    ['postgres://host/plants?sslrootcert=system&sslmode=require', 'sslrootcert=system requires sslmode=verify-full'],
  ]
  for (const [url, message] of cases) test(url, () => assert.throws(() => parsePostgresUrl(url), { message }))
})

suite('URL parameters are converted to driver and TLS options', () => {
  function read(parameters: string) {
    const {
      connectTimeoutMs,
      keepAlive,
      keepAliveInitialDelayMillis,
      channelBinding,
      readTlsOptions: tlsOptions,
    } = parsePostgresUrl(`postgres://host/plants?${parameters}`)
    return { connectTimeoutMs, keepAlive, keepAliveInitialDelayMillis, channelBinding, ...tlsOptions() }
  }
  const defaults = {
    connectTimeoutMs: undefined,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    channelBinding: undefined,
  }
  for (const [parameters, expected] of [
    ['', {}],
    ['connect_timeout=15', { connectTimeoutMs: 15_000 }],
    ['connect_timeout=0', {}],
    ['connect_timeout=61', { connectTimeoutMs: 60_000 }],
    ['connect_timeout=99999', { connectTimeoutMs: 60_000 }],
    ['keepalives=0', { keepAlive: false }],
    ['keepalives=1&keepalives_idle=30', { keepAliveInitialDelayMillis: 30_000 }],
    ['channel_binding=require', { channelBinding: 'require' }],
    ['ssl_min_protocol_version=TLSv1.3', { minVersion: 'TLSv1.3' }],
    [
      'ssl_min_protocol_version=TLSv1.2&ssl_max_protocol_version=TLSv1.2',
      { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.2' },
    ],
    ['ssl_max_protocol_version=TLSv1.2&sslpassword=secret', { maxVersion: 'TLSv1.2', passphrase: 'secret' }],
  ] as const) {
    test(parameters === '' ? 'no parameters' : parameters, () =>
      assert.deepEqual(read(parameters), { ...defaults, ...expected }),
    )
  }

  test('sslcrl', (t) => {
    assert.deepEqual(read(`sslcrl=${createTempFile(t, 'a list')}`), { ...defaults, crl: Buffer.from('a list') })
  })
})

suite('the database name in a connection URL is percent-decoded', () => {
  for (const [url, database] of [
    ['postgres://ann@host', ''],
    ['postgres://ann@host/', ''],
    ['postgres://host/pl%2Fan%3Ft%23s%40%26%2B%25', 'pl/an?t#s@&+%'],
    ['postgres://host/pl%25%32%46ants', 'pl%2Fants'],
    ['postgres://host/other?dbname=pl%2Fan%3Ft%23s%40%26%2B%25', 'pl/an?t#s@&+%'],
    ['postgres://host/G%C3%A4rten', 'Gärten'],
  ] as const) {
    test(url, () => assert.equal(parsePostgresUrl(url).database, database))
  }
})

test('the TLS options contain the host if the host is an IP address', () => {
  const url = 'postgres://ann@192.0.2.1/plants?sslmode=verify-full'
  const { StoreClient } = createClientClass(Client, () => parsePostgresUrl(url))
  const { ssl } = new StoreClient() as unknown as { ssl: object }
  assert.deepEqual(ssl, { host: '192.0.2.1' })
})

suite('two URLs that differ only in the password refer to the same database', () => {
  for (const [other, isSame] of [
    ['postgres://ann:new@host/plants?password=new&connect_timeout=5', true],
    ['postgres://ann:old@host/plants?password=old&connect_timeout=6', false],
    ['postgres://ann:old@host/other?password=old&connect_timeout=5', false],
  ] as const) {
    test(`${other}: ${isSame ? 'same' : 'different'}`, () => {
      assert.equal(isSameDatabase('postgres://ann:old@host/plants?password=old&connect_timeout=5', other), isSame)
    })
  }
})
