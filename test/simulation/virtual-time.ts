import '../support/fakeable-timers.ts'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers'
import { scheduler } from 'node:timers/promises'

/** More than any scenario takes. */
const MAX_STEPS = 10_000

export interface Timer {
  dueAt: number
  readonly callback: () => void
  /** How long until it runs again; undefined if it runs once. */
  readonly intervalMs?: number | undefined
  /** Whether the simulation has set it, and not the code under test. */
  readonly isInternal: boolean
  isCleared?: true
}

const { setImmediate: realSetImmediate } = globalThis

type AnyFunction = (...args: never[]) => unknown

/**
 * Lets simulations take the place of a function of a module of Node, one after the other. For good, as it takes long
 * until all importers have another function.
 */
export class Stub<Function extends AnyFunction> {
  #current: Function | undefined

  constructor(module: object, name: string) {
    const original = (Reflect.get(module, name) as AnyFunction).bind(module)
    Reflect.set(module, name, (...args: never[]) => (this.#current ?? original)(...args))
    syncBuiltinESMExports()
  }

  /** Takes its place. Returns what gives it back. */
  use(replacement: Function): () => void {
    this.#current = replacement
    return () => (this.#current = undefined)
  }
}

/**
 * The time of a simulation. It stands still while code runs, and then goes to the next timer, so a minute takes as long
 * as what happens in it. While it is installed, timers, immediates, sleeps, what the process tells of its event loop and
 * `Math.random` are its own, so all that happens is the same each time.
 */
export class VirtualTime {
  now = 1000
  /** How many rounds the event loop has made: in each, the timers run that are due, then what has come, then immediates. */
  loopCount = 0
  #busyMs = 0
  /** When what runs has happened: before now if the process was busy then. */
  eventTime = 0
  /** By time; of the same time, the first that was set. */
  readonly #timers: Timer[] = []
  readonly #ioEvents: Timer[] = []
  readonly #immediates: Timer[] = []
  #seed = 1
  #stepCount = 0

  /** Calls a function of the simulation later. */
  schedule(ms: number, callback: () => void): Timer {
    return this.#insertTimer({ dueAt: this.now + ms, callback, isInternal: true })
  }

  /** Calls a function once the event loop looks for what has come. */
  scheduleIo(callback: () => void): void {
    this.#ioEvents.push({ dueAt: this.now, callback, isInternal: true })
  }

  cancel(timer: Timer | undefined): void {
    if (timer === undefined) return
    timer.isCleared = true
    this.#removeTimer(timer)
  }

  /** Has the process work for so long. */
  simulateWork(ms: number): void {
    this.now += ms
    this.#busyMs += ms
    this.eventTime = this.now
  }

  /** How many timers the code under test has set and not cleared. */
  get pendingTimerCount(): number {
    return [...this.#timers, ...this.#immediates].filter(({ isInternal: isOfModel }) => !isOfModel).length
  }

  /** Runs what is due until then, unless something stops it, each with all promises that it settles. */
  async advanceTo(end: number, shouldStop: () => boolean): Promise<void> {
    await drainMicrotasks()
    while (!shouldStop()) {
      const hasPendingEvents = this.#ioEvents.length + this.#immediates.length > 0
      const next = hasPendingEvents ? this.now : (this.#timers[0]?.dueAt ?? Infinity)
      if (next > end) break
      this.now = Math.max(this.now, next)
      this.loopCount++
      const dueUntil = Math.min(this.now, end)
      const due = this.#timers.filter(({ dueAt: at }) => at <= dueUntil)
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

  /** Makes the rounds that code under test waits for: it may wait by what it shares with all that is played later. */
  async drainImmediates(): Promise<void> {
    for (let timer; (timer = this.#immediates.shift()) !== undefined;) if (!timer.isCleared) await this.#fire(timer)
  }

  #fire(timer: Timer): Promise<void> {
    if (++this.#stepCount > MAX_STEPS) throw new Error('It goes on for ever.')
    this.eventTime = timer.dueAt
    timer.callback()
    return drainMicrotasks()
  }

  /** Takes the place of the real time. Returns what gives it back. */
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

/** Settles in the next round of the real event loop: all microtasks are done by then, however many there are. */
function drainMicrotasks(): Promise<void> {
  return new Promise((resolve) => realSetImmediate(resolve))
}

/** Gives an object other functions. Returns what gives it back its own. */
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
