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

/** A program that keeps plants in a file of SQLite, and a second one that writes there, too. */
export const sqlite: SimulatedSystem<Scenario> = { name: 'sqlite', scenarios, mutants, play }

/** How long a call may take beyond the time that it waits for locks and that the disk takes. */
const TOLERANCE_MS = 50

async function play(scenario: Scenario, world: Simulation): Promise<void> {
  const { busyTimeoutMs, maxBatch, events, faults: fates } = scenario
  const { time } = world
  const model = new ReferenceModel(world)
  const clients = new Clients(world, model)
  const file = new SimulatedFile(world, model)
  world.addCleanup(statSyncStub.use((path) => file.stat(path)))
  const takeFault = world.createFaultSource(fates)
  let handle: Handle
  /** There is none while the program is not running. */
  let store = undefined as ReturnType<typeof sqliteStore> | undefined
  /** How long the disk had taken for all operations when each call began. */
  const slowMsAtStart = new Map<Call, number>()
  let totalSlowMs = 0
  let faultyUntil = -Infinity

  const program: CallTarget = {
    get store() {
      return store!
    },
    onCallStart: (call) => slowMsAtStart.set(call, totalSlowMs),
    onCallEnd(call, error) {
      const { outcome, startedAt, number, isAmbiguous: isUnsure } = call
      const tookMs = time.now - startedAt
      const hasWaited = tookMs >= busyTimeoutMs || !String(error).endsWith('busy')
      world.check(hasWaited, 'each call waits for a lock as long as it may:', number)
      const maxMs = busyTimeoutMs + totalSlowMs - slowMsAtStart.get(call)! + TOLERANCE_MS
      world.check(tookMs <= maxMs, 'each call ends in its time:', number)
      const isKnownUnapplied = outcome === 'unknown' && isUnsure !== true
      world.check(!isKnownUnapplied, 'what was surely not done is not unknown:', number)
    },
    isExpectedError: (error) => String(error).endsWith('corrupt'),
  }

  function nextFault(): Fault | undefined {
    const fault = takeFault()
    if (fault !== undefined) recordFault(fault.ms)
    if (fault?.kind === 'slow') totalSlowMs += fault.ms
    return fault
  }

  /** The program starts, and tries again while it cannot. */
  function start(): void {
    const newHandle = new Handle(world, file, nextFault, scenario, () => crash(newHandle))
    handle = newHandle
    file.recover()
    const startedAt = time.now
    try {
      if (file.missingFile !== undefined) throw new Error('there is no file of plants')
      store = sqliteStore(handle, { busyTimeoutMs, maxBatch })
    } catch (error) {
      const waitedMs = time.now - startedAt
      const hasWaited = waitedMs >= busyTimeoutMs || !String(error).endsWith('busy')
      world.check(hasWaited, 'a start waits for a lock as long as it may:', waitedMs)
      world.log('the start fails:', error)
      handle.isCrashed = true
      time.schedule(100, start)
    }
  }

  /** The program ends, in the middle of whatever it does. Its clients do not know what became of their calls. */
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
    const { commitCount: commits } = pingedHandle
    const startedAt = time.now
    const wasHealthy = faultyUntil < startedAt - 1100
    Promise.resolve(store!.ping()).then(
      () => {
        world.log('ping: ready')
        world.check(pingedHandle.commitCount > commits, 'a store is ready only if it can commit')
        const hasWritten = pingedHandle.lastWriteAt >= pingedHandle.lastFailureAt
        world.check(hasWritten, 'a store is ready after a failure only if it has written since')
      },
      (error: unknown) => {
        world.log('ping: not ready', error)
        const isHealthy = wasHealthy && faultyUntil < startedAt
        world.check(!isHealthy, 'a store is ready while all is well')
      },
    )
  }

  start()
  await world.playEvents(events, handleEvent)
  await world.advance(20_000)
  world.check(clients.pendingCalls.size === 0, 'each call ends')
  world.check(store !== undefined, 'the program starts again')
  // After all troubles it serves, and what is there is what was acknowledged.
  ping()
  const created = clients.createUniquePlant(program)
  await world.advance(1000)
  world.check(created.outcome === 'true', 'the store serves again after all troubles:', created.outcome)
  for (const owner of OWNERS) clients.list(program, owner, 100)
  void store!.close()
  await world.advance(1000)
  world.check(time.pendingTimerCount === 0, 'no timer is left in the end')
}
