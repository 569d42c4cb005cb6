import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { startServer, type StandaloneServer } from '../support/standalone-server.ts'
import { RawConnection } from '../support/raw-connection.ts'

type Line = Readonly<Record<string, string | number | boolean | undefined>>

/** Returns the lines of the access log, without the values that differ each time. */
async function readAccessLog(server: StandaloneServer, count: number): Promise<Line[]> {
  await server.waitForLogEvent('response', count)
  const lines = server.stderr.lines.map((line) => JSON.parse(line) as Line)
  return lines
    .filter(({ event }) => event === 'response')
    .map(({ time, durationMs, ...line }) => {
      assert.ok(Math.abs(Date.parse(String(time)) - Date.now()) < 60_000)
      if (durationMs !== undefined) assert.match(String(durationMs), /^\d+(\.\d{1,3})?$/)
      return line
    })
}

suite('the access log', () => {
  test('has a line for each response, except those to health checks', async (t) => {
    const server = await startServer(t, { PLANT_STORE_ACCESS_LOG: '1' })
    const headers = { 'X-Request-Id': 'a', Authorization: 'Bearer YWRh', 'Content-Type': 'application/json' }
    const fetchPath = (path: string, init: RequestInit = {}) => fetch(server.url + path, { headers, ...init })
    await fetchPath('/livez')
    await fetchPath('/readyz')
    await fetchPath('/plants?limit=secret', { method: 'GET' })
    await fetchPath('/plants', { method: 'POST', body: '{"id":1,"name":"Fern"}' })
    await fetchPath('/plants/1', { method: 'DELETE' })
    await fetchPath('/plants', { headers: { 'X-Request-Id': 'a', Authorization: 'Bearer secret' } })
    await fetchPath('/secret')
    await fetchPath('/openapi.json', { method: 'HEAD' })
    const common = { level: 'info', event: 'response', request: 'a', remoteAddress: '127.0.0.1', complete: true }
    const lines = await readAccessLog(server, 6)
    const withoutBytes = lines.map(({ bytes, ...line }) => [typeof bytes, line])
    assert.deepEqual(
      withoutBytes,
      [
        { ...common, method: 'GET', resource: '/plants', owner: 'ada', statusCode: 400, errorCode: 40004 },
        { ...common, method: 'POST', resource: '/plants', owner: 'ada', statusCode: 200 },
        { ...common, method: 'DELETE', resource: '/plants/{id}', owner: 'ada', statusCode: 204 },
        { ...common, method: 'GET', resource: '/plants', statusCode: 401, errorCode: 40101 },
        { ...common, method: 'GET', statusCode: 404, errorCode: 40400 },
        { ...common, method: 'HEAD', resource: '/openapi.json', statusCode: 200 },
      ].map((line) => ['number', line]),
    )
    assert.doesNotMatch(server.stderr.lines.join(), /secret/)
  })

  test('has a line for each request that the HTTP server rejects', async (t) => {
    const server = await startServer(t, { PLANT_STORE_ACCESS_LOG: '1' })
    const send = async (bytes: string): Promise<string> => (await RawConnection.open(server.port)).send(bytes).closed
    await send('GET /plants HTTP/1.1\r\nHost: a/b\r\nX-Request-Id: a\r\n\r\n')
    await send('secret\r\n\r\n')
    const common = { level: 'info', event: 'response', statusCode: 400, errorCode: 40000 }
    assert.deepEqual(await readAccessLog(server, 2), [
      { ...common, request: 'a', remoteAddress: '127.0.0.1', method: 'GET' },
      common,
    ])
  })

  test('is off by default', async (t) => {
    const server = await startServer(t)
    await server.fetch('/plants')
    await (await server.connect()).send('a\r\n\r\n').closed
    server.child.kill('SIGTERM')
    await server.exited
    assert.deepEqual(
      server.stderr.lines.map((line) => (JSON.parse(line) as Line)['event']),
      ['start', 'drain', 'stop'],
    )
  })
})

test('failures are logged at most once a second, with their number', async (t) => {
  const server = await startServer(t, { PLANT_STORE_URL: 'postgres://ada:secret@127.0.0.1:1/plants' })
  const startedAt = performance.now()
  for (let i = 0; i < 20; i++) assert.equal((await server.fetch('/plants')).status, 503)
  server.child.kill('SIGTERM')
  await server.exited
  const lines = server.stderr.lines.map((line) => JSON.parse(line) as Line)
  const failures = lines.filter(({ event }) => event === 'failure')
  const unreachable = lines.filter(({ event }) => event === 'unreachable').map(({ reason }) => reason)
  assert.deepEqual(unreachable, ['connect ECONNREFUSED 127.0.0.1:1'])
  assert.ok(failures.length <= 2 + (performance.now() - startedAt) / 1000, `${failures.length} lines`)
  const total = failures.reduce((sum, { count }) => sum + Number(count), 0)
  assert.equal(total, 20)
  assert.match(String(failures[0]!['reason']), /^StoreUnavailableError: [^]*ECONNREFUSED/)
  assert.match(String(failures[0]!['request']), /^[\da-f]{16}-\d+$/)
  assert.doesNotMatch(server.stderr.lines.join(), /secret/)
})

test('dropped connections are logged', async (t) => {
  const server = await startServer(t, { PLANT_STORE_MAX_CONNECTIONS: '1' })
  const first = await server.connect()
  await first.send('GET /livez HTTP/1.1\r\nHost: a\r\n\r\n').waitFor(/live/)
  await (
    await server.connect()
  ).closed
  const { level, max, count } = await server.waitForLogEvent('connections-dropped')
  assert.deepEqual([level, max, count], ['warn', 1, 1])
  first.socket.destroy()
})

test('lines are dropped and counted while nobody reads the log', async (t) => {
  const server = await startServer(t, { PLANT_STORE_ACCESS_LOG: '1' })
  server.child.stderr.pause()
  const connection = await server.connect()
  const requests = `GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${'a'.repeat(128)}\r\n\r\n`.repeat(50)
  // The pipe and both processes buffer some lines, and the server at most 1 MiB.
  let count = 0
  for (; count < 6000; count += 50) await connection.send(requests).readStatuses(50)
  server.child.stderr.resume()
  const { lines } = await server.waitForLogEvent('dropped')
  connection.socket.destroy()
  const logged = server.stderr.lines.filter((line) => line.includes('"response"')).length
  assert.equal(logged + Number(lines), count)
})
