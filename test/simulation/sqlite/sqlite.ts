import fs from 'node:fs'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { Clients, OWNERS, type Target } from '../clients.ts'
import type { Part, World } from '../simulation.ts'
import { keyOf, Truth, type Call } from '../truth.ts'
import { Hook } from '../virtual-time.ts'
import { faults } from './faults.ts'
import { PlantsFile } from './file.ts'
import { Handle } from './handle.ts'
import { scenarios, type Event, type Fate, type Scenario } from './scenario.ts'

const statSync = new Hook<(path: string) => unknown>(fs, 'statSync')

/** A program that keeps plants in a file of SQLite, and a second one that writes there, too. */
export const sqlite: Part<Scenario> = { name: 'sqlite', scenarios, faults, play }

/** How long a call may take beyond the time that it waits for locks and that the disk takes. */
const SLACK_MS = 50

async function play(scenario: Scenario, world: World): Promise<void> {
  const { busyTimeoutMs, maxBatch, events, fates } = scenario
  const { time } = world
  const truth = new Truth(world)
  const clients = new Clients(world, truth)
  const file = new PlantsFile(world, truth)
  world.atEnd(statSync.take((path) => file.stat(path)))
  const takeFate = world.inTurn(fates)
  let handle: Handle
  /** There is none while the program is not running. */
  let store = undefined as ReturnType<typeof sqliteStore> | undefined
  /** How long the disk had taken for all operations when each call began. */
  const slowBefore = new Map<Call, number>()
  let slowMs = 0
  let troubledUntil = -Infinity

  const program: Target = {
    get store() {
      return store!
    },
    began: (call) => slowBefore.set(call, slowMs),
    ended(call, error) {
      const { outcome, startedAt, number, isUnsure } = call
      const tookMs = time.now - startedAt
      const isPatient = tookMs >= busyTimeoutMs || !String(error).endsWith('busy')
      world.expect(isPatient, 'each call waits for a lock as long as it may:', number)
      const longestMs = busyTimeoutMs + slowMs - slowBefore.get(call)! + SLACK_MS
      world.expect(tookMs <= longestMs, 'each call ends in its time:', number)
      const isKnown = outcome === 'unknown' && isUnsure !== true
      world.expect(!isKnown, 'what was surely not done is not unknown:', number)
    },
    mayFail: (error) => String(error).endsWith('corrupt'),
  }

  function nextFate(): Fate | undefined {
    const fate = takeFate()
    if (fate !== undefined) trouble(fate.ms)
    if (fate?.kind === 'slow') slowMs += fate.ms
    return fate
  }

  /** The program starts, and tries again while it cannot. */
  function start(): void {
    const own = new Handle(world, file, nextFate, scenario, () => end(own))
    handle = own
    file.recover()
    const startedAt = time.now
    try {
      if (file.away !== undefined) throw new Error('there is no file of plants')
      store = sqliteStore(handle, { busyTimeoutMs, maxBatch })
    } catch (error) {
      const waitedMs = time.now - startedAt
      const isPatient = waitedMs >= busyTimeoutMs || !String(error).endsWith('busy')
      world.expect(isPatient, 'a start waits for a lock as long as it may:', waitedMs)
      world.tell('the start fails:', error)
      handle.isDead = true
      time.after(100, start)
    }
  }

  /** The program ends, in the middle of whatever it does. Its clients do not know what became of their calls. */
  function end(ended: Handle): void {
    ended.isDead = true
    if (store === undefined) return
    store = undefined
    for (const call of clients.pending) {
      call.isUnsure = true
      clients.settle(program, call, call.kind === 'list' ? 'unavailable' : 'unknown')
    }
    time.after(10, start)
  }

  function trouble(ms: number): void {
    troubledUntil = Math.max(troubledUntil, time.now + ms)
  }

  function begin(event: Event): void {
    if ('ms' in event) befall(event)
    else if (store === undefined) return
    else if (event.kind === 'ping') ping()
    else clients.begin(program, event)
  }

  function befall({ kind, ms, number }: Extract<Event, { ms: number }>): void {
    trouble(ms)
    if (kind === 'lock') file.lockedUntil = time.now + ms
    else if (kind === 'lockAll') file.closedUntil = time.now + ms
    else if (kind === 'end') end(handle)
    else if (kind === 'full') {
      file.isFull = true
      time.after(ms, () => (file.isFull = false))
    } else if (kind === 'away') {
      file.moveAway(number % 3)
      time.after(ms, () => file.bringBack())
    } else if (!file.isLocked && file.away === undefined) {
      const key = keyOf(OWNERS[number % 2]!, BigInt(number))
      truth.set(key, truth.plants.has(key) ? undefined : 'another')
    }
  }

  function ping(): void {
    const pinged = handle
    const { commits } = pinged
    const startedAt = time.now
    const wasWell = troubledUntil < startedAt - 1100
    Promise.resolve(store!.ping()).then(
      () => {
        world.tell('ping: ready')
        world.expect(pinged.commits > commits, 'a store is ready only if it can commit')
        const hasWritten = pinged.wroteAt >= pinged.failedAt
        world.expect(hasWritten, 'a store is ready after a failure only if it has written since')
      },
      (error: unknown) => {
        world.tell('ping: not ready', error)
        const isWell = wasWell && troubledUntil < startedAt
        world.expect(!isWell, 'a store is ready while all is well')
      },
    )
  }

  start()
  await world.begin(events, begin)
  await world.pass(20_000)
  world.expect(clients.pending.size === 0, 'each call ends')
  world.expect(store !== undefined, 'the program starts again')
  // After all troubles it serves, and what is there is what was acknowledged.
  ping()
  const created = clients.createNew(program)
  await world.pass(1000)
  world.expect(created.outcome === 'true', 'the store serves again after all troubles:', created.outcome)
  for (const owner of OWNERS) clients.list(program, owner, 100)
  void store!.close()
  await world.pass(1000)
  world.expect(time.left === 0, 'no timer is left in the end')
}
