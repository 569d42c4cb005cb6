// Several stores on one table, while the server restarts, fails over and ends sessions. Clients keep track of what was
// acknowledged, and check every response against it.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isUnavailable, type Store } from '../../src/plants/store.ts'
import { openPostgres } from '../../src/stores/postgres/open-postgres.ts'
import type { CleanupScope } from '../support/child-process.ts'
import {
  PostgresServer,
  skipWithoutDebianServers,
  startPgbouncer,
  startPrimaryProxy,
} from '../support/debian-servers.ts'
import { waitUntil } from '../support/wait-until.ts'

const PAGE = { limit: 1000, maxBytes: 131_072 }
const createUrl = (port: number) => `postgres://plants@127.0.0.1:${port}/postgres`

async function openStores(t: CleanupScope, url: string) {
  const warnings: unknown[] = []
  const open = () =>
    openPostgres(url, {
      migrate: true,
      storeTimeoutMs: 4000,
      postgresTable: 'public.plant_store_plants',
      postgresPoolSize: 5,
      currentUrl: () => url,
      onEvent: (event, reason) => event === 'warning' && warnings.push(reason),
    })
  const stores = await Promise.all([open(), open(), open()])
  t.after(async () => {
    for (const store of stores) await store.close!()
  })
  return { stores, warnings }
}

/** Creates, deletes and lists plants of one owner until the signal aborts. Returns the number of acknowledged writes. */
async function runClient(stores: readonly Store[], owner: string, isStopped: () => boolean) {
  /** Whether each plant exists; undefined if that's unknown. */
  const plants = new Map<bigint, boolean | undefined>()
  let acknowledged = 0

  async function write(id: bigint, call: () => unknown, isExpected: (result: boolean) => boolean, exists: boolean) {
    const before = plants.get(id)
    try {
      const result = (await call()) as boolean
      assert.ok(isExpected(result), `${owner} ${id}: ${call.toString()} returned ${result}, before: ${before}`)
      plants.set(id, exists)
      acknowledged++
    } catch (error) {
      if (!isUnavailable(error)) throw error
      if (error.isOutcomeUnknown && before !== exists) plants.set(id, undefined)
      await sleep(20)
    }
  }

  for (let id = 1n; !isStopped(); id++) {
    const store = stores[Number(id % 3n)]!
    plants.set(id, false)
    await write(id, () => store.create(owner, { id, name: 'plant' }), Boolean, true)
    const [other = id] = [...plants.keys()].slice(Number(id % BigInt(plants.size)))
    const existed = plants.get(other)
    if (id % 2n === 0n) {
      await write(
        other,
        () => store.delete(owner, other),
        (result) => existed === undefined || result === existed,
        false,
      )
    } else if (existed === true) {
      await write(
        other,
        () => store.create(owner, { id: other, name: 'other' }),
        (isCreated) => !isCreated,
        true,
      )
    }
    try {
      const page = await store.list(owner, PAGE)
      for (const { name } of page.plants) assert.equal(name, 'plant')
      const ids = new Set(page.plants.map(({ id }) => id))
      for (const [id, exists] of plants) if (exists !== undefined) assert.equal(ids.has(id), exists, `${owner} ${id}`)
    } catch (error) {
      if (!isUnavailable(error)) throw error
    }
  }
  return acknowledged
}

/** Runs clients during a disruption, and until writes succeed again. */
async function runClients(stores: readonly Store[], disrupt: () => Promise<void>) {
  let isStopped = false
  const clients = Array.from({ length: 12 }, (_, index) => runClient(stores, `owner ${index}`, () => isStopped))
  const failure = Promise.all(clients)
  await Promise.race([failure, disrupt().then(() => sleep(1000))])
  isStopped = true
  const counts = await failure
  for (const count of counts) assert.ok(count > 0)
  for (const [index, store] of stores.entries()) {
    // PgBouncer waits for 15 s after a failed login (server_login_retry).
    await waitUntil(() =>
      Promise.resolve(store.ping!()).then(
        () => true,
        () => false,
      ),
    )
    assert.equal(await store.create(`last ${index}`, { id: 1n, name: 'plant' }), true)
  }
}

async function disruptServer(server: PostgresServer) {
  for (const mode of ['fast', 'immediate'] as const) {
    for (let round = 0; round < 3; round++) {
      await sleep(300)
      await server.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'plant-store' AND random() < 0.5`,
      )
    }
    await server.stop(mode)
    await sleep(300)
    await server.launch()
    await sleep(500)
  }
}

describe('three stores on one table lose no acknowledged plant', { skip: skipWithoutDebianServers }, () => {
  test('while the server restarts and ends sessions', async (t) => {
    const server = await PostgresServer.start(t)
    const { stores } = await openStores(t, server.url)
    await runClients(stores, () => disruptServer(server))
  })

  test('behind PgBouncer in transaction mode, with one warning for each feature that it lacks', async (t) => {
    const server = await PostgresServer.start(t)
    const { stores, warnings } = await openStores(t, createUrl(await startPgbouncer(t, server, 3)))
    await runClients(stores, () => disruptServer(server))
    assert.equal(warnings.filter((warning) => String(warning).includes('statement_timeout')).length, stores.length)
    assert.ok(warnings.length <= 2 * stores.length)
  })

  test('while a synchronous standby takes over', async (t) => {
    const primary = await PostgresServer.start(t)
    const standby = await PostgresServer.startStandby(t, primary, 'standby')
    await primary.alterSystem('synchronous_standby_names', 'standby')
    await primary.waitForRows(`SELECT FROM pg_stat_replication WHERE sync_state = 'sync'`)
    const { stores } = await openStores(t, createUrl(await startPrimaryProxy(t, [primary, standby])))
    await runClients(stores, async () => {
      await sleep(1000)
      await primary.stop('immediate')
      await standby.runPgCtl('promote')
      await sleep(3000)
    })
  })
})
