import fs from 'node:fs'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { Clients, OWNERS, type CallTarget } from '../clients.ts'
import type { SimulatedSystem, Simulation } from '../simulation.ts'
import { getPlantKey, ReferenceModel, type Call } from '../reference-model.ts'
import { Stub } from '../virtual-time.ts'
import { mutants } from './mutants.ts'
import { SimulatedFile } from './simulated-file.ts'
import { Handle } from './handle.ts'
import { scenarios, type Event, type Fault, type Scenario } from './scenario.ts'

const statSyncStub = new Stub<(path: string) => unknown>(fs, 'statSync')

/** A server with a SQLite store, and a second process that writes to the same file. */
export const sqlite: SimulatedSystem<Scenario> = { name: 'sqlite', scenarios, mutants, play }

/** How much longer a call may take than its wait for locks plus the delays of the disk. */
const TOLERANCE_MS = 50

async function play(scenario: Scenario, world: Simulation): Promise<void> {
  const { busyTimeoutMs, maxBatch, events, faults } = scenario
  const { time } = world
  const model = new ReferenceModel(world)
  const clients = new Clients(world, model)
  const file = new SimulatedFile(world, model)
  world.addCleanup(statSyncStub.use((path) => file.stat(path)))
  const nextInjectedFault = world.createFaultSource(faults)
  let handle: Handle
  /** Undefined while the server isn't running. */
  let store = undefined as ReturnType<typeof sqliteStore> | undefined
  /** `totalSlowMs` at the start of each call. */
  const slowMsAtStart = new Map<Call, number>()
  let totalSlowMs = 0
  let faultyUntil = -Infinity

  const program: CallTarget = {
    get store() {
      return store!
    },
    onCallStart: (call) => slowMsAtStart.set(call, totalSlowMs),
    onCallEnd(call, error) {
      const { outcome, startedAt, number, isAmbiguous } = call
      const tookMs = time.now - startedAt
      const hasWaited = tookMs >= busyTimeoutMs || !String(error).endsWith('busy')
      world.check(hasWaited, 'a call waits for a lock until its timeout:', number)
      const maxMs = busyTimeoutMs + totalSlowMs - slowMsAtStart.get(call)! + TOLERANCE_MS
      world.check(tookMs <= maxMs, 'a call settles in time:', number)
      const isKnownUnapplied = outcome === 'unknown' && isAmbiguous !== true
      world.check(!isKnownUnapplied, 'a write that was certainly not applied is not reported as unknown:', number)
    },
    isExpectedError: (error) => String(error).endsWith('corrupt'),
  }

  function nextFault(): Fault | undefined {
    const fault = nextInjectedFault()
    if (fault !== undefined) recordFault(fault.ms)
    if (fault?.kind === 'slow') totalSlowMs += fault.ms
    return fault
  }

  /** Starts the server. Retries if startup fails. */
  function start(): void {
    const newHandle = new Handle(world, file, nextFault, scenario, () => crash(newHandle))
    handle = newHandle
    file.recover()
    const startedAt = time.now
    try {
      if (file.missingFile !== undefined) throw new Error('the database file is missing')
      store = sqliteStore(handle, { busyTimeoutMs, maxBatch })
    } catch (error) {
      const waitedMs = time.now - startedAt
      const hasWaited = waitedMs >= busyTimeoutMs || !String(error).endsWith('busy')
      world.check(hasWaited, 'startup waits for a lock until its timeout:', waitedMs)
      world.log('startup failed:', error)
      handle.isCrashed = true
      time.schedule(100, start)
    }
  }

  /** Kills the server at any point. The outcome of pending writes is unknown to its clients. */
  function crash(crashedHandle: Handle): void {
    crashedHandle.isCrashed = true
    if (store === undefined) return
    store = undefined
    for (const call of clients.pendingCalls) {
      call.isAmbiguous = true
      clients.finishCall(program, call, call.kind === 'list' ? 'unavailable' : 'unknown')
    }
    time.schedule(10, start)
  }

  function recordFault(ms: number): void {
    faultyUntil = Math.max(faultyUntil, time.now + ms)
  }

  function handleEvent(event: Event): void {
    if ('ms' in event) disrupt(event)
    else if (store === undefined) return
    else if (event.kind === 'ping') ping()
    else clients.startEvent(program, event)
  }

  function disrupt({ kind, ms, number }: Extract<Event, { ms: number }>): void {
    recordFault(ms)
    if (kind === 'lock') file.writeLockedUntil = time.now + ms
    else if (kind === 'lockAll') file.readLockedUntil = time.now + ms
    else if (kind === 'end') crash(handle)
    else if (kind === 'full') {
      file.isFull = true
      time.schedule(ms, () => (file.isFull = false))
    } else if (kind === 'away') {
      file.moveAway(number % 3)
      time.schedule(ms, () => file.moveBack())
    } else if (!file.isLocked && file.missingFile === undefined) {
      const key = getPlantKey(OWNERS[number % 2]!, BigInt(number))
      model.setPlant(key, model.plants.has(key) ? undefined : 'another')
    }
  }

  function ping(): void {
    const pingedHandle = handle
    const { commitCount } = pingedHandle
    const startedAt = time.now
    const wasHealthy = faultyUntil < startedAt - 1100
    Promise.resolve(store!.ping()).then(
      () => {
        world.log('ping: ready')
        world.check(pingedHandle.commitCount > commitCount, 'a store is ready only if it can commit')
        const hasWritten = pingedHandle.lastWriteAt >= pingedHandle.lastFailureAt
        world.check(hasWritten, 'after a failure, a store is ready only if it has written successfully since')
      },
      (error: unknown) => {
        world.log('ping: not ready', error)
        const isHealthy = wasHealthy && faultyUntil < startedAt
        world.check(!isHealthy, 'a store is ready while there are no faults')
      },
    )
  }

  start()
  await world.playEvents(events, handleEvent)
  await world.advance(20_000)
  world.check(clients.pendingCalls.size === 0, 'every call settles')
  world.check(store !== undefined, 'the server starts again')
  // After all faults, the store works and contains exactly the acknowledged plants.
  ping()
  const created = clients.createUniquePlant(program)
  await world.advance(1000)
  world.check(created.outcome === 'true', 'the store creates plants again after all faults:', created.outcome)
  for (const owner of OWNERS) clients.list(program, owner, 100)
  void store!.close()
  await world.advance(1000)
  world.check(time.pendingTimerCount === 0, 'no timer is left at the end')
}
