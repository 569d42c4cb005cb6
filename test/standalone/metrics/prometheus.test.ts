import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { startChild } from '../../support/child-process.ts'
import { findCodeBlocks, readDocument } from '../../support/package/documents.ts'
import { scrapeMetrics, startWithMetrics } from '../../support/program/metrics.ts'
import { TOKEN, type Program } from '../../support/program/program.ts'
import { skipWithoutCommand } from '../../support/skip-reasons.ts'
import { createTempDirectory, createTempFile } from '../../support/temp-files.ts'
import { findFreePort } from '../../support/wire/find-free-port.ts'

const OBSERVABILITY = readDocument('docs/observability.md')
const QUERIES = findCodeBlocks(OBSERVABILITY, 'promql').map(({ code }) => code.trim())
const ALERTS = [
  'PlantStoreConnectionsNearLimit',
  'PlantStoreDescriptorsNearLimit',
  'PlantStoreNotReady',
  'PlantStoreFailing',
  'PlantStoreOverloaded',
]
const [SCRAPE_CONFIG, ALERT_RULES] = findCodeBlocks(OBSERVABILITY, 'yaml').map(({ code }) => code)
const { panels } = JSON.parse(readFileSync('docs/grafana.json', 'utf8')) as {
  panels: { targets: { expr: string; legendFormat: string }[] }[]
}

suite('promtool', { skip: skipWithoutCommand('promtool') }, () => {
  test('accepts the metrics', async (t) => {
    const { program, admin } = await startWithMetrics(t)
    await program.fetch('/plants')
    const input = await scrapeMetrics(admin)
    assert.equal(execFileSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' }), '')
  })

  test('accepts the alerts in docs/observability.md', (t) => {
    const printed = execFileSync('promtool', ['check', 'rules', createTempFile(t, ALERT_RULES!)], { encoding: 'utf8' })
    assert.match(printed, /SUCCESS: 9 rules found/)
  })
})

test(
  'promtool fires the alert for failures after a short burst of failures',
  { skip: skipWithoutCommand('promtool') },
  (t) => {
    const labels = 'instance="a",http_request_method="GET",http_route="/plants"'
    const seriesOf = (status: number, values: string): string =>
      `{ series: 'http_server_request_duration_seconds_count{${labels},http_response_status_code="${status}"}', values: '${values}' }`
    const check = (time: string, alerts: string): string =>
      `{ eval_time: ${time}, alertname: PlantStoreFailing, exp_alerts: [${alerts}] }`
    const alert = '{ exp_annotations: { summary: More than 1% of the requests fail; look for "failure" in the log. } }'
    const rules = createTempFile(t, ALERT_RULES!)
    const tests = `
rule_files: [${rules}]
evaluation_interval: 15s
tests:
  - interval: 15s
    input_series:
      - ${seriesOf(200, '0x200')}
      - ${seriesOf(500, '0x40 20x160')}
    alert_rule_test:
      - ${check('10m', '')}
      - ${check('13m', alert)}
      - ${check('20m', '')}
`
    assert.match(execFileSync('promtool', ['test', 'rules', createTempFile(t, tests)], { encoding: 'utf8' }), /SUCCESS/)
  },
)

suite('Prometheus', { skip: skipWithoutCommand('prometheus') }, () => {
  test('fires the alerts in docs/observability.md after a single failed request and an invalid token file', async (t) => {
    const tokens = createTempFile(t, `ada:${TOKEN}\n`)
    const environment = { PLANT_STORE_URL: 'postgres://127.0.0.1:1/plants', PLANT_STORE_TOKENS_FILE: tokens }
    const { program, admin } = await startWithMetrics(t, environment)
    const ask = await startPrometheus(t, admin)
    // Prometheus must have scraped the counters before they increase.
    await ask('count_over_time(plant_store_ready[1m]) > 1')
    assert.equal((await program.fetch('/plants')).status, 503)
    writeFileSync(tokens, 'ada\n')
    program.child.kill('SIGHUP')
    for (const alert of ['PlantStoreFailing', 'PlantStoreSettingsFileRejected']) {
      await ask(`ALERTS{alertname="${alert}",alertstate="firing"}`)
    }
    for (const query of [
      'increase(plant_store_log_events_total{event="failure"}[1m]) > 0',
      'increase(plant_store_log_events_total{event="tokens-kept"}[1m]) > 0',
    ]) {
      await ask(query)
    }
  })

  test('runs every query and fires every alert in docs/observability.md under load', async (t) => {
    // The store is unreachable, so that some requests fail. The limits on connections and file descriptors are low.
    const environment = {
      PLANT_STORE_URL: 'postgres://127.0.0.1:1/plants',
      PLANT_STORE_MAX_CONNECTIONS: '90',
      PLANT_STORE_HEADERS_TIMEOUT_MS: '120000',
    }
    const { program, admin } = await startWithMetrics(t, environment, { prelude: 'ulimit -n 120' })
    const ask = await startPrometheus(t, admin)
    await runUnderLoad(program, [sendRequests], async () => {
      const [rates, failures, times, storeTimes] = QUERIES
      const byRoute = (await ask(rates!)).map(
        ({ labels }) => `${labels['http_route']} ${labels['http_response_status_code']}`,
      )
      assert.deepEqual(byRoute.sort(), ['/plants 503', '/plants/{id} 400', '/readyz 503'])
      const [share] = await ask(failures!)
      assert.ok(share!.value > 0.4 && share!.value < 0.6, String(share!.value))
      const slow = await ask(times!)
      assert.deepEqual(slow.map(({ labels }) => labels['http_route']).sort(), ['/plants', '/plants/{id}', '/readyz'])
      for (const { value } of slow) assert.ok(value < 10)
      const list = (await ask(storeTimes!)).find(({ labels }) => labels['operation'] === 'list')
      assert.ok(list!.value < 10)
      const shown = panels.flatMap(({ targets }) => targets)
      assert.deepEqual(
        QUERIES.filter((query) => !shown.some(({ expr }) => expr === query)),
        [],
      )
      for (const { expr, legendFormat } of shown) {
        // The value may be 0, but queryPrometheus waits for a positive value.
        const [found] = await ask(`(${expr}) + 1`)
        for (const [, name] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
          assert.ok(Object.hasOwn(found!.labels, name!), expr)
      }
    })

    const fires = (alert: string) => ask(`ALERTS{alertname="${alert}",alertstate="firing"}`)
    for (let i = 0; i < 80; i++) await program.connect()
    await runUnderLoad(program, [sendRequests, blockProcess], async () => {
      for (const alert of ALERTS) await fires(alert)
    })
    program.child.kill('SIGKILL')
    await fires('PlantStoreDown')
  })
})

/** The response of Prometheus's query API. */
interface QueryResponse {
  readonly data: { readonly result: readonly { metric: Record<string, string>; value: [at: number, value: string] }[] }
}

/**
 * Starts Prometheus with the configuration in docs/observability.md, but with shorter intervals. Returns a function that
 * repeats a query until a sample is above 0. For rates, this takes two scrapes.
 */
async function startPrometheus(t: TestContext, admin: string) {
  const cwd = createTempDirectory(t)
  const config = `
global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: [rules.yml]
${SCRAPE_CONFIG!.replace('127.0.0.1:9090', new URL(admin).host)}
`
  writeFileSync(join(cwd, 'prometheus.yml'), config)
  writeFileSync(join(cwd, 'rules.yml'), ALERT_RULES!.replaceAll(/for: \d+m/g, 'for: 1s'))
  const host = `127.0.0.1:${await findFreePort()}`
  const args = ['--config.file=prometheus.yml', '--storage.tsdb.path=data', `--web.listen-address=${host}`]
  startChild(t, 'prometheus', args, { cwd, stdio: 'ignore' })

  return async function queryPrometheus(query: string) {
    for (;;) {
      // Prometheus needs some time to start.
      const response = await fetch(`http://${host}/api/v1/query?query=${encodeURIComponent(query)}`).catch(() => null)
      assert.notEqual(response?.status, 400, `Prometheus cannot read ${query}`)
      const { data } = response?.ok ? ((await response.json()) as QueryResponse) : { data: { result: [] } }
      const samples = data.result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }))
      if (samples.some(({ value }) => value > 0)) return samples
      await setTimeout(100)
    }
  }
}

type Load = (program: Program, signal: AbortSignal) => Promise<void>

/** Runs an action while a program is under load. */
async function runUnderLoad(program: Program, loads: readonly Load[], act: () => Promise<void>): Promise<void> {
  const stop = new AbortController()
  const running = Promise.all(loads.map((load) => load(program, stop.signal)))
  try {
    await act()
  } finally {
    stop.abort()
    await running
  }
}

const sendRequests: Load = async (program, signal) => {
  while (!signal.aborted) {
    for (const path of ['/plants', '/readyz']) await (await program.fetch(path)).text()
    await (await program.fetch('/plants/x', { method: 'DELETE' })).text()
    await setTimeout(20)
  }
}

/** Stops the program repeatedly, for longer than the threshold of the alert. */
const blockProcess: Load = async ({ child }, signal) => {
  while (!signal.aborted) {
    child.kill('SIGSTOP')
    await setTimeout(500)
    child.kill('SIGCONT')
    await setTimeout(200)
  }
}
