import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { memoryStore, StoreUnavailableError, type Store } from '../../src/index.ts'
import { serveInProcess, WRITER_TOKEN } from '../support/standalone-server.ts'
import { RawConnection } from '../support/raw-connection.ts'
import { waitUntil } from '../support/wait-until.ts'
import { VERSION } from '../../src/version.ts'

type Target = Readonly<{ url: string; admin: string; port: number }>

const serve = (t: Parameters<typeof serveInProcess>[0], store?: Store): Promise<Target> =>
  serveInProcess(t, { PLANT_STORE_ADMIN_PORT: '0' }, store)

async function scrape(admin: string): Promise<ReadonlyMap<string, number>> {
  const text = await (await fetch(`${admin}/metrics`)).text()
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    samples.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]),
  )
}

const request = (url: string, init: RequestInit = {}): Promise<Response> =>
  fetch(url, { headers: { Authorization: `Bearer ${WRITER_TOKEN}`, 'Content-Type': 'application/json' }, ...init })

suite('metrics', () => {
  test('count requests and their durations by method, route and status', async (t) => {
    const { url, admin } = await serve(t)
    await request(`${url}/plants`, { method: 'POST', body: '{"id":1,"name":"Fern"}' })
    await request(`${url}/plants/1`, { method: 'DELETE' })
    await request(`${url}/plants/1`, { method: 'DELETE' })
    await request(`${url}/plants/%31?a`, { method: 'PROPFIND' })
    await request(`${url}/livez`)
    await request(`${url}/unknown-1`)
    await request(`${url}/unknown-2`)
    const labels = (method: string, route: string, status: number): string =>
      `{http_request_method="${method}",http_route="${route}",http_response_status_code="${status}"}`
    const expected = new Map([
      [labels('POST', '/plants', 200), 1],
      [labels('DELETE', '/plants/{id}', 204), 1],
      [labels('DELETE', '/plants/{id}', 404), 1],
      [labels('_OTHER', '/plants/{id}', 405), 1],
      [labels('GET', '/livez', 200), 1],
      [labels('GET', 'unmatched', 404), 2],
    ])
    const name = 'http_server_request_duration_seconds'
    const samples = await scrape(admin)
    const counts = [...samples].filter(([key]) => key.startsWith(`${name}_count`))
    assert.deepEqual(new Map(counts.map(([key, count]) => [key.slice(`${name}_count`.length), count])), expected)
    const sum = samples.get(`${name}_sum${labels('POST', '/plants', 200)}`)!
    assert.ok(sum > 0 && sum < 10)
    const last = labels('GET', 'unmatched', 404).replace('}', ',le="+Inf"}')
    assert.equal(samples.get(`${name}_bucket${last}`), 2)
  })

  test('count requests that the HTTP server rejects, and open connections', async (t) => {
    const { port, admin } = await serve(t)
    const malformed = await RawConnection.open(port)
    await malformed.send('GET /plants\r\n\r\n').closed
    const invalidHost = await RawConnection.open(port)
    invalidHost.send('GET /plants HTTP/1.1\r\nHost: a/b\r\n\r\n')
    await invalidHost.closed
    const open = await RawConnection.open(port)
    await open.send('GET /livez HTTP/1.1\r\nHost: a\r\n\r\n').waitFor(/200/)
    const samples = await scrape(admin)
    assert.equal(samples.get('plant_store_rejected_requests_total{http_response_status_code="400"}'), 2)
    assert.equal(samples.get('plant_store_open_connections'), 1)
    open.socket.destroy()
  })

  test('count store calls by operation and outcome', async (t) => {
    const errors = [
      new StoreUnavailableError('a'),
      new StoreUnavailableError('b', { isOutcomeUnknown: true }),
      new Error('c'),
    ]
    const { url, admin } = await serve(t, {
      ...memoryStore(),
      create() {
        throw errors.pop()!
      },
      list: () => Promise.resolve({ plants: [], hasMore: false }),
    })
    const statuses = []
    for (let i = 0; i < 3; i++) {
      statuses.push((await request(`${url}/plants`, { method: 'POST', body: '{"id":1,"name":"Fern"}' })).status)
    }
    assert.deepEqual(statuses, [500, 503, 503])
    await request(`${url}/plants`)
    await request(`${url}/plants/1`, { method: 'DELETE' })
    const samples = await scrape(admin)
    const count = (operation: string, outcome: string): number | undefined =>
      samples.get(`plant_store_store_call_duration_seconds_count{operation="${operation}",outcome="${outcome}"}`)
    assert.deepEqual(
      [count('create', 'fault'), count('create', 'unknown'), count('create', 'unavailable'), count('create', 'ok')],
      [1, 1, 1, undefined],
    )
    assert.deepEqual([count('list', 'ok'), count('delete', 'ok')], [1, 1])
  })

  test('count requests whose client disconnects before the response', async (t) => {
    let hasCalled = false
    const remove = (): Promise<boolean> => {
      hasCalled = true
      return new Promise(() => undefined)
    }
    const { port, admin } = await serve(t, { ...memoryStore(), delete: remove })
    const connection = await RawConnection.open(port)
    connection.send(`DELETE /plants/1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${WRITER_TOKEN}\r\n\r\n`)
    await waitUntil(() => hasCalled)
    connection.socket.resetAndDestroy()
    const label = '{http_request_method="DELETE",http_route="/plants/{id}",http_response_status_code="none"}'
    const name = `http_server_request_duration_seconds_count${label}`
    await waitUntil(async () => (await scrape(admin)).get(name) === 1)
  })

  test('describe the process', async (t) => {
    const { admin } = await serve(t)
    const response = await fetch(`${admin}/metrics`)
    assert.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
    const samples = await scrape(admin)
    assert.equal(samples.get(`plant_store_build_info{version="${VERSION}",node="${process.versions.node}"}`), 1)
    assert.ok(samples.get('process_resident_memory_bytes')! > 1e7)
    assert.ok(samples.get('nodejs_heap_size_used_bytes')! > 1e6)
    assert.ok(samples.get('process_cpu_seconds_total')! > 0)
    assert.ok(Math.abs(samples.get('process_start_time_seconds')! - Date.now() / 1000) < 3600)
  })

  test('have a type and a description for each name', async (t) => {
    const { admin } = await serve(t)
    const text = await (await fetch(`${admin}/metrics`)).text()
    for (const key of (await scrape(admin)).keys()) {
      const name = key.replace(/\{.*/, '')
      assert.match(text, new RegExp(`^# HELP ${name} .+\\n# TYPE ${name} (counter|gauge)$`, 'm'))
    }
  })
})
