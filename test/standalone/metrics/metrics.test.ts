import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readDocument } from '../../support/documents.ts'
import { scrape, series, startWithMetrics } from '../../support/metrics.ts'
import { TOKEN } from '../../support/program.ts'

suite('the metrics', () => {
  test('are those that docs/running.md lists', async (t) => {
    const { admin } = await startWithMetrics(t)
    const told = [...(await scrape(admin)).matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name)
    const names = String.raw`\w+_(?:seconds|requests|connections|total|calls|size|bytes|info)`
    const rows = [...readDocument('docs/running.md').text.matchAll(new RegExp(`^\\|(.*?\`${names}\`) \\|`, 'gm'))]
    const listed = rows.flatMap(([, cell]) => [...cell!.matchAll(/`(\w+)`/g)].map(([, name]) => name))
    assert.deepEqual(listed.sort(), told.sort())
  })

  test('count requests by route, method and status, and by nothing that a client chooses', async (t) => {
    const { program, admin } = await startWithMetrics(t)
    await program.fetch('/plants', { method: 'POST', body: '{"id":1,"name":"Fern"}' })
    for (const path of ['/plants', '/plants?limit=1', '/nothing', '/%70lants', '/readyz']) await program.fetch(path)
    await program.fetch('/plants/1', { method: 'DELETE' })
    await program.fetch('/plants/1', { method: 'PROPFIND' })
    const found = await series(admin, /^http_server_request_duration_seconds_count/, 6)
    assert.deepEqual(
      found,
      [
        ['DELETE', '/plants/{id}', 204, 1],
        ['GET', '/plants', 200, 3],
        ['GET', '/readyz', 200, 1],
        ['GET', 'unmatched', 404, 1],
        ['POST', '/plants', 200, 1],
        ['_OTHER', '/plants/{id}', 405, 1],
      ].map(
        ([method, route, status, count]) =>
          `http_server_request_duration_seconds_count{http_request_method="${method}",http_route="${route}",` +
          `http_response_status_code="${status}"} ${count}`,
      ),
    )
  })

  test('count a request whose client goes away, and one that is in flight', async (t) => {
    const { program, admin } = await startWithMetrics(t)
    const connection = await program.connect()
    connection.send(
      `POST /plants HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${TOKEN}\r\n` +
        'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
    )
    await series(admin, /^http_server_active_requests 1$/, 1)
    await series(admin, /^plant_store_http_open_connections 1$/, 1)
    connection.socket.destroy()
    await series(admin, /^http_server_active_requests 0$/, 1)
    const [count] = await series(admin, /^http_server_request_duration_seconds_count/, 1)
    assert.match(count!, /http_response_status_code="none"} 1$/)
  })

  test('count refusals on a bare connection', async (t) => {
    const { program, admin } = await startWithMetrics(t, { PLANT_STORE_HEADERS_TIMEOUT_MS: '50' })
    await (await program.connect()).send('no HTTP\r\n\r\n').closed
    await (await program.connect()).send(`GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}`).closed
    await (await program.connect()).send('GET /').closed
    assert.deepEqual(
      await series(admin, /^plant_store_http_refusals_total/, 3),
      [400, 408, 431].map((status) => `plant_store_http_refusals_total{http_response_status_code="${status}"} 1`),
    )
  })

  test('count a request whose body cannot be read on both sides', async (t) => {
    const { program, admin } = await startWithMetrics(t)
    const fields = `Host: a\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\n`
    const broken = `POST /plants HTTP/1.1\r\n${fields}Transfer-Encoding: chunked\r\n\r\nno size\r\n`
    assert.match(await (await program.connect()).send(broken).closed, /^HTTP\/1\.1 400 /)
    const found = await series(admin, /^(?:plant_store_http_refusals|http_server_request_duration_seconds_count)/, 2)
    assert.deepEqual(found, [
      'http_server_request_duration_seconds_count{http_request_method="POST",http_route="/plants",' +
        'http_response_status_code="none"} 1',
      'plant_store_http_refusals_total{http_response_status_code="400"} 1',
    ])
  })

  test('count connections that are dropped', async (t) => {
    const { program, admin } = await startWithMetrics(t, { PLANT_STORE_MAX_CONNECTIONS: '1' })
    const first = await program.connect()
    await (
      await program.connect()
    ).closed
    assert.equal((await series(admin, /^plant_store_http_dropped_connections_total 1$/, 1)).length, 1)
    first.socket.destroy()
  })

  test('tell of the process', async (t) => {
    const { admin } = await startWithMetrics(t)
    const value = async (name: string): Promise<number> => {
      const [line] = await series(admin, new RegExp(`^${name} `), 1)
      return Number(line!.split(' ')[1])
    }
    assert.ok(Math.abs((await value('process_start_time_seconds')) - Date.now() / 1000) < 60)
    for (const name of [
      'process_cpu_seconds_total',
      'process_resident_memory_bytes',
      'nodejs_heap_size_used_bytes',
      'nodejs_heap_size_total_bytes',
    ]) {
      assert.ok((await value(name)) > 0, name)
    }
    const [build] = await series(admin, /^plant_store_build_info/, 1)
    assert.match(build!, /^plant_store_build_info{version="\d+\.\d+\.\d+[^"]*",node="\d+\.\d+\.\d+[^"]*"} 1$/)
  })
})
