import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { suite, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { blocksOf, readDocument } from '../../support/package/documents.ts'
import { scrape, startWithMetrics } from '../../support/program/metrics.ts'
import type { Program } from '../../support/program/program.ts'
import { startPrometheus } from '../../support/program/prometheus.ts'
import { withoutCommand } from '../../support/requirements.ts'
import { temporaryFile } from '../../support/temporary-file.ts'

const OBSERVING = readDocument('docs/observing.md')
const QUERIES = blocksOf(OBSERVING, 'promql').map(({ code }) => code.trim())
const ALERTS = [
  'PlantStoreRunsOutOfConnections',
  'PlantStoreRunsOutOfDescriptors',
  'PlantStoreKeepsWhatIsOld',
  'PlantStoreIsNotReady',
  'PlantStoreFails',
  'PlantStoreIsBusy',
]
const [SCRAPES, RULES] = blocksOf(OBSERVING, 'yaml').map(({ code }) => code)
const DASHBOARD = readFileSync('docs/grafana.json', 'utf8')

/** A dashboard of Grafana, as far as Prometheus answers it. */
interface Dashboard {
  readonly panels: readonly { readonly targets: readonly { readonly expr: string; readonly legendFormat: string }[] }[]
}

suite('promtool', { skip: withoutCommand('promtool') }, () => {
  test('finds nothing wrong with the metrics', async (t) => {
    const { program, admin } = await startWithMetrics(t)
    await program.fetch('/plants')
    const input = await scrape(admin)
    assert.equal(execFileSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' }), '')
  })

  test('finds nothing wrong with the alerts of docs/observing.md', (t) => {
    const printed = execFileSync('promtool', ['check', 'rules', temporaryFile(t, RULES!)], { encoding: 'utf8' })
    assert.match(printed, /SUCCESS: 9 rules found/)
  })
})

suite('Prometheus', { skip: withoutCommand('prometheus') }, () => {
  test('answers the queries and fires the alerts of docs/observing.md', async (t) => {
    // The program is not ready, so that some requests fail. It may have few connections, and has few descriptors.
    const environment = {
      PLANT_STORE_URL: 'postgres://127.0.0.1:1/plants',
      PLANT_STORE_MAX_CONNECTIONS: '90',
      PLANT_STORE_HEADERS_TIMEOUT_MS: '120000',
    }
    const { program, admin } = await startWithMetrics(t, environment, { prelude: 'ulimit -n 120' })
    const ask = await startPrometheus(t, admin, SCRAPES!, RULES!.replaceAll(/for: \d+m/g, 'for: 1s'))
    await during(program, [keepAsking], async () => {
      const [rates, failures, times, storeTimes] = QUERIES
      const byRoute = (await ask(rates!)).map(({ labels }) => [
        labels['http_route'],
        labels['http_response_status_code'],
      ])
      assert.deepEqual(byRoute.sort(), [
        ['/plants', '503'],
        ['/plants/{id}', '400'],
        ['/readyz', '503'],
      ])
      const [share] = await ask(failures!)
      assert.ok(share!.value > 0.4 && share!.value < 0.6, String(share!.value))
      const slow = await ask(times!)
      assert.deepEqual(slow.map(({ labels }) => labels['http_route']).sort(), ['/plants', '/plants/{id}', '/readyz'])
      for (const { value } of slow) assert.ok(value < 10)
      const list = (await ask(storeTimes!)).find(({ labels }) => labels['operation'] === 'list')
      assert.ok(list!.value < 10)
      const shown = (JSON.parse(DASHBOARD) as Dashboard).panels.flatMap(({ targets }) => targets)
      assert.deepEqual(
        QUERIES.filter((query) => !shown.some(({ expr }) => expr === query)),
        [],
      )
      for (const { expr, legendFormat } of shown) {
        // A value may be 0, for which nobody waits.
        const [found] = await ask(`(${expr}) + 1`)
        for (const [, name] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
          assert.ok(Object.hasOwn(found!.labels, name!), expr)
      }
    })

    async function fires(alert: string): Promise<void> {
      const [firing] = await ask(`ALERTS{alertname="${alert}",alertstate="firing"}`)
      assert.equal(firing!.labels['alertname'], alert)
    }
    for (let i = 0; i < 80; i++) await program.connect()
    await during(program, [keepAsking, keepBusy], async () => {
      for (const alert of ALERTS) await fires(alert)
    })
    program.child.kill('SIGKILL')
    await fires('PlantStoreIsDown')
  })
})

type Load = (program: Program, signal: AbortSignal) => Promise<void>

/** Does something while a program has loads. */
async function during(program: Program, loads: readonly Load[], act: () => Promise<void>): Promise<void> {
  const stop = new AbortController()
  const running = Promise.all(loads.map((load) => load(program, stop.signal)))
  try {
    await act()
  } finally {
    stop.abort()
    await running
  }
}

const keepAsking: Load = async (program, signal) => {
  const requests = [
    ['/plants', 'GET'],
    ['/plants/x', 'DELETE'],
    ['/readyz', 'GET'],
  ] as const
  while (!signal.aborted) {
    for (const [path, method] of requests) await (await program.fetch(path, { method })).text()
    await setTimeout(20)
  }
}

/** Takes the CPU from a program again and again, for longer than the alert allows, and has it read its files again. */
const keepBusy: Load = async ({ child }, signal) => {
  while (!signal.aborted) {
    child.kill('SIGSTOP')
    await setTimeout(500)
    child.kill('SIGCONT')
    // It has no file of tokens that it could read again.
    child.kill('SIGHUP')
    await setTimeout(200)
  }
}
