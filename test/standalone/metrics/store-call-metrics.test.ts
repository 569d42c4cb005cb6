import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { memoryStore, StoreUnavailableError, type Page, type Store } from '../../../src/index.ts'
import { formatFamilies } from '../../../src/standalone/metrics/metric-families.ts'
import { createStoreCallMetrics } from '../../../src/standalone/metrics/store-call-metrics.ts'
import { metricsOf } from '../../../src/stores/store-metrics.ts'
import { DeferredCall } from '../../support/deferred-call.ts'

function throwError(error: Error): never {
  throw error
}

suite('the store call metrics', () => {
  const memory = memoryStore()

  function countsOf(metrics: ReturnType<typeof createStoreCallMetrics>): string[] {
    const lines = formatFamilies(metrics.families).split('\n')
    return lines.filter((line) => line.includes('_call_duration_seconds_count') && !line.endsWith(' 0'))
  }

  test('instrument() counts synchronous and asynchronous calls without changing their results', async () => {
    const metrics = createStoreCallMetrics()
    const store = metrics.instrument({ ...memory, ping: () => Promise.resolve() })
    assert.equal(store.create('ada', { id: 1n, name: 'Fern' }), true)
    assert.equal((store.list('ada', { limit: 1, maxBytes: 1 }) as Page).plants.length, 1)
    assert.equal(store.delete('ada', 2n), false)
    await store.ping?.()
    assert.deepEqual(
      countsOf(metrics),
      ['create', 'list', 'delete', 'ping'].map(
        (operation) => `plant_store_store_call_duration_seconds_count{operation="${operation}",outcome="ok"} 1`,
      ),
    )
  })

  test('instrument() calls methods on the original store with all arguments', () => {
    const calls: unknown[] = []
    const called: Store = {
      ...memory,
      create(...args) {
        return calls.push(this === called, args) > 0
      },
    }
    const store = createStoreCallMetrics().instrument(called)
    const args = ['ada', { id: 1n, name: 'Fern' }, { signal: new AbortController().signal }]
    Reflect.apply(store.create.bind(store), undefined, args)
    assert.deepEqual(calls, [true, args])
    assert.ok(!('ping' in store))
  })

  test('instrument() counts failed synchronous and asynchronous calls by outcome', async () => {
    for (const [outcome, error] of [
      ['unavailable', new StoreUnavailableError('away')],
      ['unknown', new StoreUnavailableError('lost', { isOutcomeUnknown: true })],
      ['fault', new TypeError('a fault')],
    ] as const) {
      const metrics = createStoreCallMetrics()
      for (const fail of [(): never => throwError(error), () => Promise.reject(error)]) {
        const store = metrics.instrument({ ...memory, delete: fail })
        await assert.rejects(async () => store.delete('ada', 1n), error)
      }
      const series = `plant_store_store_call_duration_seconds_count{operation="delete",outcome="${outcome}"}`
      assert.deepEqual(countsOf(metrics), [`${series} 2`])
    }
  })

  test('the store call metrics count active calls and batch sizes', async () => {
    const metrics = createStoreCallMetrics()
    const held = new DeferredCall<boolean>()
    const store: Store = { ...memory, delete: () => held.call() }
    const deleted = metrics.instrument(store).delete('ada', 1n)
    assert.match(formatFamilies(metrics.families), /^plant_store_store_active_calls 1$/m)
    held.resolve(true)
    await deleted
    assert.match(formatFamilies(metrics.families), /^plant_store_store_active_calls 0$/m)
    metricsOf(store).onBatch(3)
    const text = formatFamilies(metrics.families)
    for (const sample of ['bucket{le="2"} 0', 'bucket{le="5"} 1', 'sum 3']) {
      assert.ok(text.includes(`plant_store_store_batch_size_${sample}\n`), sample)
    }
  })
})
