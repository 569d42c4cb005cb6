import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { memoryStore, StoreUnavailableError, type Page, type Store } from '../../src/index.ts'
import { formatFamilies } from '../../src/standalone/metrics/families.ts'
import { createStoreMetrics } from '../../src/standalone/metrics/store-calls.ts'
import { Batcher } from '../../src/stores/batcher.ts'
import { blocksOf, readDocument } from '../support/documents.ts'
import { startProgram, TOKEN, type Program } from '../support/program.ts'
import { withoutCommand } from '../support/requirements.ts'

async function startWithMetrics(t: TestContext, environment = {}): Promise<{ program: Program; admin: string }> {
  const program = await startProgram(t, { PLANT_STORE_ADMIN_PORT: '0', ...environment })
  const { admin } = await program.logged('start')
  return { program, admin: String(admin) }
}

async function scrape(admin: string): Promise<string> {
  return (await fetch(`${admin}/metrics`)).text()
}

/** The series that match, without those of buckets; scraped until there are so many. */
async function series(admin: string, pattern: RegExp, atLeast: number): Promise<string[]> {
  for (;;) {
    const found = (await scrape(admin)).split('\n').filter((line) => !line.includes('_bucket') && pattern.test(line))
    if (found.length >= atLeast) return found.sort()
  }
}

suite('the admin port', () => {
  test('has the probes and the metrics, and nothing else', async (t) => {
    const { admin } = await startWithMetrics(t)
    const paths = ['/livez', '/readyz', '/metrics', '/plants', '/openapi.json', '/']
    const responses = await Promise.all(paths.map((path) => fetch(admin + path)))
    assert.deepEqual(
      responses.map(({ status }) => status),
      [200, 200, 200, 404, 404, 404],
    )
    assert.equal(responses[2]!.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
    assert.deepEqual(await responses[3]!.json(), {
      error: 40400,
      message: 'There is nothing at this path. Here are /livez, /readyz and /metrics.',
    })
    const post = await fetch(`${admin}/metrics`, { method: 'POST' })
    assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD, OPTIONS'])
  })

  test('is the only place of the metrics', async (t) => {
    const { program } = await startWithMetrics(t)
    assert.equal((await program.fetch('/metrics')).status, 404)
  })

  test('may have a host of its own', async (t) => {
    const { admin } = await startWithMetrics(t, { PLANT_STORE_ADMIN_HOST: '::1' })
    assert.match(admin, /^http:\/\/\[::1\]:/)
    assert.equal((await fetch(`${admin}/livez`)).status, 200)
  })

  test('says that the service is not ready once it shuts down', async (t) => {
    const { program, admin } = await startWithMetrics(t, { PLANT_STORE_DRAIN_DELAY_MS: '60000' })
    program.child.kill('SIGTERM')
    await program.logged('drain-delay')
    assert.equal((await fetch(`${admin}/readyz`)).status, 503)
    assert.equal((await fetch(`${admin}/livez`)).status, 200)
  })

  test('is named if another has it', async (t) => {
    const { program } = await startWithMetrics(t)
    const started = startProgram(t, { PLANT_STORE_ADMIN_PORT: String(program.port) })
    await assert.rejects(started, {
      message:
        'The program did not start: plant-store: PLANT_STORE_ADMIN_PORT takes a port that is free on ' +
        `PLANT_STORE_ADMIN_HOST; ${program.port} is not (EADDRINUSE)`,
    })
  })
})

suite('the metrics', () => {
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
    for (const name of ['nodejs_eventloop_lag_p99_seconds', 'nodejs_eventloop_lag_max_seconds']) {
      const lag = await value(name)
      assert.ok(lag >= 0 && lag < 60, name)
    }
    const [build] = await series(admin, /^plant_store_build_info/, 1)
    assert.match(build!, /^plant_store_build_info{version="\d+\.\d+\.\d+[^"]*",node="\d+\.\d+\.\d+[^"]*"} 1$/)
  })
})

suite('the calls of a store', () => {
  const memory = memoryStore()
  const errors: Record<string, Error> = {
    unavailable: new StoreUnavailableError('away'),
    unknown: new StoreUnavailableError('lost', { isOutcomeUnknown: true }),
    fault: new TypeError('a fault'),
  }

  function countsOf(metrics: ReturnType<typeof createStoreMetrics>): string[] {
    const lines = formatFamilies(metrics.families).split('\n')
    return lines.filter((line) => line.includes('_call_duration_seconds_count') && !line.endsWith(' 0'))
  }

  test('are counted, and pass through at once or later', async () => {
    const metrics = createStoreMetrics()
    const store = metrics.watch({ ...memory, ping: () => Promise.resolve() })
    assert.equal(store.create('ada', { id: 1n, name: 'Fern' }), true)
    assert.equal((store.list('ada', { limit: 1, maxBytes: 1 }) as Page).length, 1)
    assert.equal(store.delete('ada', 2n), false)
    await store.ping?.()
    await store.close?.()
    assert.deepEqual(
      countsOf(metrics),
      ['create', 'list', 'delete', 'ping'].map(
        (operation) => `plant_store_store_call_duration_seconds_count{operation="${operation}",outcome="ok"} 1`,
      ),
    )
  })

  test('get all that they were called with, and the store keeps all that it can do', () => {
    class Extended {
      readonly #calls: unknown[] = []
      create(...args: unknown[]): boolean {
        this.#calls.push(args)
        return true
      }
      list(): Page {
        return []
      }
      delete(): boolean {
        return true
      }
      get calls(): readonly unknown[] {
        return this.#calls
      }
    }
    const extended = new Extended()
    const store = createStoreMetrics().watch(extended)
    const more = { signal: new AbortController().signal }
    Reflect.apply(store.create.bind(store), undefined, ['ada', { id: 1n, name: 'Fern' }, more])
    assert.deepEqual(extended.calls, [['ada', { id: 1n, name: 'Fern' }, more]])
    assert.ok(!('ping' in store) && 'calls' in store)
  })

  for (const [outcome, error] of Object.entries(errors)) {
    for (const [when, fail] of [
      [
        'throws',
        () => {
          throw error
        },
      ],
      ['rejects', () => Promise.reject(error)],
    ] as const) {
      test(`are ${outcome} if the store ${when} so`, async () => {
        const metrics = createStoreMetrics()
        const store: Store = metrics.watch({ ...memory, delete: fail })
        await assert.rejects(async () => store.delete('ada', 1n), error)
        assert.deepEqual(countsOf(metrics), [
          `plant_store_store_call_duration_seconds_count{operation="delete",outcome="${outcome}"} 1`,
        ])
      })
    }
  }

  test('that share a statement are counted as a batch', async () => {
    const metrics = createStoreMetrics()
    const run = (operations: readonly number[]): PromiseSettledResult<number>[] =>
      operations.map((value) => ({ status: 'fulfilled', value }))
    const batcher = new Batcher<number, number>(run, { schedule: setImmediate })
    await Promise.all([1, 2, 3].map((operation) => batcher.add(operation)))
    const text = formatFamilies(metrics.families)
    assert.match(
      text,
      /^plant_store_store_batch_size_bucket{le="2"} 0\nplant_store_store_batch_size_bucket{le="5"} 1$/m,
    )
    assert.match(text, /^plant_store_store_batch_size_sum 3$/m)
  })
})

const RUNNING = readDocument('docs/running.md')

suite('promtool', { skip: withoutCommand('promtool') }, () => {
  test('finds nothing wrong with the metrics', async (t) => {
    const { program, admin } = await startWithMetrics(t)
    await program.fetch('/plants')
    const input = await scrape(admin)
    assert.equal(execFileSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' }), '')
  })

  test('finds nothing wrong with the alerts of docs/running.md', (t) => {
    const directory = temporaryDirectory(t)
    const [alerts] = blocksOf(RUNNING, 'yaml')
    writeFileSync(join(directory, 'alerts.yml'), alerts!.code)
    const printed = execFileSync('promtool', ['check', 'rules', 'alerts.yml'], { cwd: directory, encoding: 'utf8' })
    assert.match(printed, /SUCCESS: 2 rules found/)
  })
})

function temporaryDirectory(t: TestContext): string {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-'))
  t.after(() => rmSync(directory, { recursive: true }))
  return directory
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

interface Result {
  readonly metric: Readonly<Record<string, string>>
  readonly value: readonly [time: number, value: string]
}

/** Starts Prometheus, which scrapes the program every second; returns the way to ask it. */
async function startPrometheus(t: TestContext, admin: string): Promise<(query: string) => Promise<readonly Result[]>> {
  const directory = temporaryDirectory(t)
  const targets = `[{ targets: ['${new URL(admin).host}'] }]`
  writeFileSync(
    join(directory, 'prometheus.yml'),
    `global: { scrape_interval: 1s }\nscrape_configs: [{ job_name: plant-store, static_configs: ${targets} }]\n`,
  )
  const url = `127.0.0.1:${await freePort()}`
  const args = ['--config.file=prometheus.yml', '--storage.tsdb.path=data', `--web.listen-address=${url}`]
  const child = spawn('prometheus', args, { cwd: directory, stdio: 'ignore' })
  const ended = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return async (query) => {
    for (;;) {
      // It takes a moment to start, and two scrapes until there are rates.
      const response = await fetch(`http://${url}/api/v1/query?query=${encodeURIComponent(query)}`).catch(
        () => undefined,
      )
      if (response?.ok) {
        const { data } = (await response.json()) as { data: { result: readonly Result[] } }
        if (data.result.some(({ value: [, value] }) => Number(value) > 0)) return data.result
      }
      await setTimeout(100)
    }
  }
}

test('Prometheus answers the queries of docs/running.md', { skip: withoutCommand('prometheus') }, async (t) => {
  const { program, admin } = await startWithMetrics(t, { PLANT_STORE_DRAIN_DELAY_MS: '600000' })
  // From now on some requests fail: the service is not ready.
  program.child.kill('SIGTERM')
  const enough = new AbortController()
  const load = (async () => {
    while (!enough.signal.aborted) {
      for (const [path, method] of [
        ['/plants', 'GET'],
        ['/plants/x', 'DELETE'],
        ['/readyz', 'GET'],
      ] as const) {
        await (await program.fetch(path, { method })).text()
      }
      await setTimeout(20)
    }
  })()
  const ask = await startPrometheus(t, admin)
  const [rates, failures, times, storeTimes] = blocksOf(RUNNING, 'promql').map(({ code }) => code.trim())

  const byRoute = (await ask(rates!)).map(({ metric }) => [metric['http_route'], metric['http_response_status_code']])
  assert.deepEqual(byRoute.sort(), [
    ['/plants', '200'],
    ['/plants/{id}', '400'],
    ['/readyz', '503'],
  ])
  const [share] = await ask(failures!)
  assert.ok(Number(share!.value[1]) > 0.2 && Number(share!.value[1]) < 0.5)
  const routes = (await ask(times!)).map(({ metric }) => metric['http_route'])
  assert.deepEqual(routes.sort(), ['/plants', '/plants/{id}', '/readyz'])
  const list = (await ask(storeTimes!)).find(({ metric }) => metric['operation'] === 'list')
  assert.ok(Number(list!.value[1]) < 1)
  enough.abort()
  await load
})
