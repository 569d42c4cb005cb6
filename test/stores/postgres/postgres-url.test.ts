import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readPostgresUrl } from '../../../src/stores/postgres/postgres-url.ts'

suite('is written for the driver', () => {
  const cases: [string, string][] = [
    ['postgres://ann:secret@host/plants', 'postgres://ann:secret@host/plants'],
    ['postgresql://ann@[::1]:6432/plants', 'postgresql://ann@[::1]:6432/plants'],
    ['postgres://%2Fvar%2Frun/plants', 'postgres://%2Fvar%2Frun/plants'],
    ['postgres:///plants?host=/run/postgresql', 'postgres:///plants?host=%2Frun%2Fpostgresql'],
    ['postgres://ann:s@/plants?host=/run/postgresql', 'postgres://ann:s@localhost/plants?host=%2Frun%2Fpostgresql'],
    ['postgres://ann:p%40%23%2F@host/plants', 'postgres://ann:p%40%23%2F@host/plants'],
    ['postgres://ann:a,b,@host/plants', 'postgres://ann:a,b,@host/plants'],
    ['postgres://host/plants?sslmode=require', 'postgres://host/plants?sslmode=require&uselibpqcompat=true'],
    ['postgres://host/plants?target_session_attrs=read-write', 'postgres://host/plants'],
    ['postgres://host/plants?application_name=a', 'postgres://host/plants?application_name=a'],
  ]
  for (const [url, written] of cases) test(url, () => assert.equal(readPostgresUrl(url), written))
})

suite('is refused, and nothing of its password is said', () => {
  const form =
    'takes postgres://user:password@host/database; write @ / ? # and % in a password as %40 %2F %3F %23 and %25'
  const oneHost = 'takes one host; a proxy such as HAProxy, or a DNS name, stands for several'
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
    [
      'postgres://ann:w0rd@host/plants?sslmod=require',
      'unknown parameter "sslmod"; known are application_name, host, options, port, sslcert, sslkey, sslmode, ' +
        'sslnegotiation, sslrootcert, target_session_attrs',
    ],
    ['postgres://ann:w0rd@host/plants?sslmode=prefer', 'sslmode takes disable, require, verify-ca, verify-full'],
    ['postgres://ann:w0rd@host/plants?sslnegotiation=w0rd', 'sslnegotiation takes postgres, direct'],
    ['postgres://ann:w0rd@host/plants?target_session_attrs=any', 'target_session_attrs takes read-write, primary'],
  ]
  for (const [url, message] of cases) test(url, () => assert.throws(() => readPostgresUrl(url), { message }))
})
