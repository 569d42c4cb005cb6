import '../support/fakeable-timers.ts'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers'
import { scheduler } from 'node:timers/promises'

/** More than any scenario needs. */
const MAX_STEPS = 10_000

export interface Timer {
  dueAt: number
  readonly callback: () => void
  /** Defined for `setInterval` only. */
  readonly intervalMs?: number | undefined
  /** Whether the simulation created the timer, and not the code under test. */
  readonly isInternal: boolean
  isCleared?: true
}

const { setImmediate: realSetImmediate } = globalThis

type AnyFunction = (...args: never[]) => unknown

/**
 * Replaces a function of a Node module for one simulation at a time. The wrapper stays installed, because updating all
 * importers is slow.
 */
export class Stub<Function extends AnyFunction> {
  #current: Function | undefined

  constructor(module: object, name: string) {
    const original = (Reflect.get(module, name) as AnyFunction).bind(module)
    Reflect.set(module, name, (...args: never[]) => (this.#current ?? original)(...args))
    syncBuiltinESMExports()
  }

  /** Replaces the function. Returns a function that restores the original. */
  use(replacement: Function): () => void {
    this.#current = replacement
    return () => (this.#current = undefined)
  }
}

/**
 * The clock and event loop of a simulation. Time stands still while code runs and then jumps to the next timer, so an
 * idle minute costs nothing. `install()` replaces timers, immediates, `Atomics.wait`, the event-loop metrics and
 * `Math.random`, which makes every run of a scenario identical.
 */
export class VirtualTime {
  now = 1000
  /** Event-loop ticks so far. Each tick runs the due timers, then I/O events, then immediates. */
  loopCount = 0
  #busyMs = 0
  /** When the current event was due, which is before `now` if the process was busy. */
  eventTime = 0
  /** Sorted by due time, then by creation. */
  readonly #timers: Timer[] = []
  readonly #ioEvents: Timer[] = []
  readonly #immediates: Timer[] = []
  #seed = 1
  #stepCount = 0

  /** Schedules a callback of the simulation itself. */
  schedule(ms: number, callback: () => void): Timer {
    return this.#insertTimer({ dueAt: this.now + ms, callback, isInternal: true })
  }

  /** Schedules a callback for the next I/O phase. */
  scheduleIo(callback: () => void): void {
    this.#ioEvents.push({ dueAt: this.now, callback, isInternal: true })
  }

  cancel(timer: Timer | undefined): void {
    if (timer === undefined) return
    timer.isCleared = true
    this.#removeTimer(timer)
  }

  /** Simulates that the process is busy for `ms`. */
  simulateWork(ms: number): void {
    this.now += ms
    this.#busyMs += ms
    this.eventTime = this.now
  }

  /** The number of pending timers and immediates of the code under test. */
  get pendingTimerCount(): number {
    return [...this.#timers, ...this.#immediates].filter(({ isInternal }) => !isInternal).length
  }

  /** Runs everything that is due until `end`, with the resulting microtasks, unless `shouldStop` returns true. */
  async advanceTo(end: number, shouldStop: () => boolean): Promise<void> {
    await drainMicrotasks()
    while (!shouldStop()) {
      const hasPendingEvents = this.#ioEvents.length + this.#immediates.length > 0
      const next = hasPendingEvents ? this.now : (this.#timers[0]?.dueAt ?? Infinity)
      if (next > end) break
      this.now = Math.max(this.now, next)
      this.loopCount++
      const dueUntil = Math.min(this.now, end)
      const due = this.#timers.filter(({ dueAt }) => dueAt <= dueUntil)
      for (const timer of due) {
        if (timer.isCleared || shouldStop()) continue
        this.#removeTimer(timer)
        if (timer.intervalMs !== undefined)
          this.#insertTimer(Object.assign(timer, { dueAt: this.now + timer.intervalMs }))
        await this.#fire(timer)
      }
      for (const phase of [this.#ioEvents, this.#immediates]) {
        for (let remaining = phase.length; remaining > 0 && !shouldStop(); remaining--) {
          const timer = phase.shift()!
          if (!timer.isCleared) await this.#fire(timer)
        }
      }
    }
    this.now = Math.max(this.now, end)
  }

  /** Runs the remaining immediates: a shared scheduler that still waits for one would block all later scenarios. */
  async drainImmediates(): Promise<void> {
    for (let timer; (timer = this.#immediates.shift()) !== undefined;) if (!timer.isCleared) await this.#fire(timer)
  }

  #fire(timer: Timer): Promise<void> {
    if (++this.#stepCount > MAX_STEPS) throw new Error('The simulation does not end.')
    this.eventTime = timer.dueAt
    timer.callback()
    return drainMicrotasks()
  }

  /** Replaces the real clock and timers. Returns a function that restores them. */
  install(): () => void {
    const set = (callback: (...args: unknown[]) => void, ms = 1, ...args: unknown[]): object => {
      return this.#createHandle({
        dueAt: this.now + Math.max(1, ms),
        callback: () => callback(...args),
        isInternal: false,
      })
    }
    const clear = (timer: Timer | undefined): void => this.cancel(timer)
    const setImmediate = (callback: () => void): object => {
      const timer: Timer = { dueAt: this.now, callback, isInternal: false }
      this.#immediates.push(timer)
      return timer
    }
    const functions = {
      setTimeout: set,
      setInterval: (callback: () => void, ms = 1) => {
        return this.#createHandle({ dueAt: this.now + ms, callback, intervalMs: Math.max(1, ms), isInternal: false })
      },
      setImmediate,
      clearTimeout: clear,
      clearInterval: clear,
      clearImmediate: clear,
    }
    const restorers = [
      overrideProperties(globalThis, functions),
      overrideProperties(timers, functions),
      overrideProperties(scheduler, { yield: () => new Promise<void>((resolve) => setImmediate(resolve)) }),
      overrideProperties(performance, {
        now: () => this.now,
        eventLoopUtilization: () => ({ active: this.#busyMs }),
        nodeTiming: { uvMetricsInfo: this },
      }),
      overrideProperties(process, { cpuUsage: () => ({ user: 1000 * this.#busyMs, system: 0 }) }),
      overrideProperties(Atomics, {
        wait: (_array: unknown, _index: number, _value: number, ms: number) => (this.now += ms),
      }),
      overrideProperties(Math, { random: () => (this.#seed = (this.#seed * 48_271) % 2_147_483_647) / 2_147_483_647 }),
    ]
    return () => {
      for (const restore of restorers) restore()
    }
  }

  #createHandle(timer: Timer): object {
    const ms = timer.dueAt - this.now
    const refresh = (): Timer => {
      this.#removeTimer(timer)
      return this.#insertTimer(Object.assign(timer, { dueAt: this.now + ms }))
    }
    return Object.assign(this.#insertTimer(timer), { unref: () => timer, ref: () => timer, refresh })
  }

  #insertTimer(timer: Timer): Timer {
    let index = this.#timers.length
    while (index > 0 && this.#timers[index - 1]!.dueAt > timer.dueAt) index--
    this.#timers.splice(index, 0, timer)
    return timer
  }

  #removeTimer(timer: Timer): void {
    const index = this.#timers.indexOf(timer)
    if (index !== -1) this.#timers.splice(index, 1)
  }
}

/** Resolves in the next tick of the real event loop, once all microtasks have run. */
function drainMicrotasks(): Promise<void> {
  return new Promise((resolve) => realSetImmediate(resolve))
}

/** Replaces properties of an object. Returns a function that restores them. */
function overrideProperties(target: object, functions: Record<string, unknown>): () => void {
  const originals = Object.keys(functions).map((name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const)
  for (const [name, value] of Object.entries(functions)) {
    Object.defineProperty(target, name, { value, configurable: true, writable: true })
  }
  return () => {
    for (const [name, descriptor] of originals) {
      if (descriptor === undefined) Reflect.deleteProperty(target, name)
      else Object.defineProperty(target, name, descriptor)
    }
  }
}
