import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { memoryStore } from '../../../src/index.ts'
import { overrideStore } from '../../support/database/override-store.ts'
import { blockEventLoop } from '../../support/event-loop.ts'
import { DeferredCall } from '../../support/deferred-call.ts'
import { readDocument } from '../../support/package/documents.ts'
import { captureLog, getValues } from '../../support/program/capture-log.ts'
import { sendRawRequest, serveWithAdmin, WRITER_TOKEN } from '../../support/program/in-process-program.ts'
import { scrapeMetrics, waitForSeries, startWithMetrics } from '../../support/program/metrics.ts'
import { TOKEN } from '../../support/program/program.ts'
import { createTempFile } from '../../support/temp-files.ts'
import { RawConnection } from '../../support/wire/raw-connection.ts'

const FIELDS = `Host: a\r\nAuthorization: Bearer ${WRITER_TOKEN}\r\n`
const POST = `POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\n`

suite('the metrics', () => {
  test('docs/observability.md lists exactly the exposed metrics', async (t) => {
    const { admin } = await serveWithAdmin(t)
    const told = [...(await scrapeMetrics(admin)).matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name)
    const names = String.raw`\w+_(?:seconds|requests|connections|total|calls|size|bytes|info|ready|rejected|guarded|fds)`
    const rows = [...readDocument('docs/observability.md').text.matchAll(new RegExp(`^\\|(.*?\`${names}\`) \\|`, 'gm'))]
    const listed = rows.flatMap(([, cell]) => [...cell!.matchAll(/`(\w+)`/g)].map(([, name]) => name))
    assert.deepEqual(listed.sort(), told.sort())
  })

  test('counters start at 0 for every log event and every expected status', async (t) => {
    const { program, admin } = await startWithMetrics(t)
    const before = (await scrapeMetrics(admin)).split('\n')
    const events = before.filter((line) => line.startsWith('plant_store_log_events_total'))
    assert.deepEqual(
      events.filter((line) => !line.endsWith(' 0')),
      ['plant_store_log_events_total{event="start"} 1'],
    )
    for (const event of ['failure', 'tokens-kept', 'store-url-kept', 'unready', 'crash']) {
      assert.ok(events.includes(`plant_store_log_events_total{event="${event}"} 0`), event)
    }
    const refusals = before.filter((line) => line.startsWith('plant_store_http_refusals_total'))
    assert.deepEqual(
      refusals,
      [400, 408, 431].map((status) => `plant_store_http_refusals_total{http_response_status_code="${status}"} 0`),
    )
    const create = (id: unknown, token?: string) =>
      program.fetch('/plants', { method: 'POST', body: JSON.stringify({ id, name: 'Fern' }) }, token)
    for (const [id, token] of [[1], [1], ['x'], [1, 'unknown']] as const) await (await create(id, token)).text()
    await program.fetch('/plants')
    for (const id of [1, 'x']) await program.fetch(`/plants/${id}`, { method: 'DELETE' })
    const nameOf = (line: string): string => line.slice(0, line.lastIndexOf(' '))
    const known = new Set(before.map(nameOf))
    const requests = (await scrapeMetrics(admin)).split('\n').filter((line) => line.startsWith('http_server_request'))
    assert.deepEqual(
      requests.filter((line) => !known.has(nameOf(line))),
      [],
    )
    assert.equal(requests.filter((line) => /_count.* [1-9]/.test(line)).length, 7)
  })

  test('a gauge reports whether the current content of a settings file is invalid', async (t) => {
    const [tokens, url] = [createTempFile(t, `ada:${TOKEN}\n`), createTempFile(t, 'memory:\n')]
    const { program, admin } = await startWithMetrics(t, { PLANT_STORE_TOKENS_FILE: tokens, PLANT_STORE_URL_FILE: url })
    const rejected = async (): Promise<string[]> =>
      Array.from(
        (await scrapeMetrics(admin)).matchAll(/^plant_store_settings_file_rejected(.*)$/gm),
        ([, rest]) => rest!,
      )
    const of = (...values: readonly [number, number]): string[] =>
      ['TOKENS', 'URL'].map((name, i) => `{setting="PLANT_STORE_${name}_FILE"} ${values[i]}`)
    assert.deepEqual(await rejected(), of(0, 0))
    writeFileSync(tokens, 'ada\n')
    writeFileSync(url, 'sqlite:plants.db\n')
    program.child.kill('SIGHUP')
    await program.waitForLogEvent('store-url-kept')
    await program.waitForLogEvent('tokens-kept')
    assert.deepEqual(await rejected(), of(1, 1))
    writeFileSync(tokens, `ada:${TOKEN}\n`)
    writeFileSync(url, 'memory:\n')
    program.child.kill('SIGHUP')
    await program.waitForLogEvent('store-url-read')
    await program.waitForLogEvent('tokens-read')
    assert.deepEqual(await rejected(), of(0, 0))
  })

  test('the metrics count requests by route, method and status', async (t) => {
    const { port, admin } = await serveWithAdmin(t)
    const connection = await RawConnection.open(port)
    connection.send(`${POST}Content-Length: 22\r\n\r\n{"id":1,"name":"Fern"}`)
    const paths = ['/', '/plants', '/plants?limit=1', '/nothing', '/%70lants', '/readyz'].map((path) => `GET ${path}`)
    const methods = ['HEAD', 'OPTIONS', 'PATCH', 'PUT', 'TRACE'].map((method) => `${method} /livez`)
    for (const request of [...paths, ...methods, 'DELETE /plants/1', 'PROPFIND /plants/1']) {
      connection.send(`${request} HTTP/1.1\r\n${FIELDS}\r\n`)
    }
    const expected = [
      ['DELETE', '/plants/{id}', 204, 1],
      ['GET', '/', 200, 1],
      ['GET', '/plants', 200, 3],
      ['GET', '/readyz', 200, 1],
      ['GET', 'unmatched', 404, 1],
      ['HEAD', '/livez', 200, 1],
      ['OPTIONS', '/livez', 204, 1],
      ['PATCH', '/livez', 405, 1],
      ['POST', '/plants', 200, 1],
      ['PUT', '/livez', 405, 1],
      ['TRACE', '/livez', 405, 1],
      ['_OTHER', '/plants/{id}', 405, 1],
    ]
    assert.deepEqual(
      await waitForSeries(admin, /^http_server_request_duration_seconds_count(?!.* 0$)/, expected.length),
      expected.map(
        ([method, route, status, count]) =>
          `http_server_request_duration_seconds_count{http_request_method="${method}",http_route="${route}",` +
          `http_response_status_code="${status}"} ${count}`,
      ),
    )
  })

  test('the metrics contain the durations of requests and store calls in seconds', async (t) => {
    const { port, admin } = await serveWithAdmin(t)
    const sentAt = performance.now()
    await sendRawRequest(port, `GET /plants HTTP/1.1\r\n${FIELDS}\r\n`)
    for (const name of ['http_server_request', 'plant_store_store_call']) {
      const [sum] = await waitForSeries(admin, new RegExp(`^${name}_duration_seconds_sum(?!.* 0$)`), 1)
      const seconds = Number(sum!.split(' ')[1])
      assert.ok(0 < seconds && seconds < (performance.now() - sentAt) / 1000, sum)
    }
  })

  test('the duration of a request includes the wait for earlier pipelined requests', async (t) => {
    const events = captureLog(t)
    const held = new DeferredCall<boolean>()
    const store = overrideStore(memoryStore(), { delete: () => held.call() })
    const { port, admin } = await serveWithAdmin(t, { PLANT_STORE_ACCESS_LOG: '1' }, store)
    const connection = await RawConnection.open(port)
    const [first, second] = ['DELETE /plants/1', 'GET /plants'].map((line) => `${line} HTTP/1.1\r\n${FIELDS}\r\n`)
    const answers = connection.send(`${first}${second}GET / HTTP/1.1\r\nHost: a b\r\n\r\n`).readResponses(3)
    await held.called
    await setImmediate()
    blockEventLoop(50)
    held.resolve(true)
    await answers
    const times = getValues(events, 'durationMs')
    assert.ok(times.length === 3 && times.every((ms) => Number(ms) >= 50), String(times))
    const [sum] = await waitForSeries(
      admin,
      /^http_server_request_duration_seconds_sum.*GET.*"\/plants".*200.*[1-9]$/,
      1,
    )
    assert.ok(Number(sum!.split(' ')[1]) >= 0.05, sum)
  })

  test('the metrics count requests in flight and requests without a response', async (t) => {
    const { port, admin } = await serveWithAdmin(t)
    const connection = await RawConnection.open(port)
    connection.send(`${POST}Content-Length: 100\r\n\r\n{`)
    await waitForSeries(admin, /^http_server_active_requests 1$/, 1)
    await waitForSeries(admin, /^plant_store_http_open_connections 1$/, 1)
    connection.socket.destroy()
    await waitForSeries(admin, /^http_server_active_requests 0$/, 1)
    const [count] = await waitForSeries(admin, /^http_server_request_duration_seconds_count(?!.* 0$)/, 1)
    assert.match(count!, /http_response_status_code="none"} 1$/)
  })

  test('the metrics show how many requests node:http rejects with each status', async (t) => {
    const { port, admin } = await serveWithAdmin(t, { PLANT_STORE_HEADERS_TIMEOUT_MS: '50' })
    for (const sent of [
      `GET / HTTP/1.1\r\nX: ${'x'.repeat(20_000)}`,
      'GET /',
      `${POST}Transfer-Encoding: chunked\r\n\r\nno size\r\n`,
    ]) {
      await (await RawConnection.open(port)).send(sent).closed
    }
    assert.deepEqual(
      await waitForSeries(
        admin,
        /^(?:plant_store_http_refusals|http_server_request_duration_seconds_count)(?!.* 0$)/,
        4,
      ),
      [
        'http_server_request_duration_seconds_count{http_request_method="POST",http_route="/plants",' +
          'http_response_status_code="none"} 1',
        ...[400, 408, 431].map((status) => `plant_store_http_refusals_total{http_response_status_code="${status}"} 1`),
      ],
    )
  })

  test('the metrics describe the process and its version', async (t) => {
    const { admin } = await serveWithAdmin(t)
    const value = async (name: string): Promise<number> => {
      const [line] = await waitForSeries(admin, new RegExp(`^${name} `), 1)
      return Number(line!.split(' ')[1])
    }
    const cpuSeconds = (): number => process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6
    const before = cpuSeconds()
    const told = await value('process_cpu_seconds_total')
    assert.ok(before <= told && told <= cpuSeconds(), `${before} <= ${told}`)
    assert.ok(Math.abs((await value('process_start_time_seconds')) - Date.now() / 1000) < 60)
    for (const name of ['process_resident_memory', 'nodejs_heap_size_used', 'nodejs_heap_size_total']) {
      assert.ok((await value(`${name}_bytes`)) > 0, name)
    }
    const [build] = await waitForSeries(admin, /^plant_store_build_info/, 1)
    assert.match(build!, /^plant_store_build_info{version="\d+\.\d+\.\d+[^"]*",node="\d+\.\d+\.\d+[^"]*"} 1$/)
  })
})
