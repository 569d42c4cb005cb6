import '../support/fakeable-timers.ts'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers'
import { scheduler } from 'node:timers/promises'

/** More than any scenario takes. */
const MAX_STEPS = 10_000

export interface Timer {
  at: number
  readonly run: () => void
  /** How long until it runs again; undefined if it runs once. */
  readonly everyMs?: number | undefined
  /** Whether the simulation has set it, and not the code under test. */
  readonly isOfModel: boolean
  isCleared?: true
}

const { setImmediate: realRound } = globalThis

type AnyFunction = (...args: never[]) => unknown

/**
 * Lets simulations take the place of a function of a module of Node, one after the other. For good, as it takes long
 * until all importers have another function.
 */
export class Hook<Function extends AnyFunction> {
  #current: Function | undefined

  constructor(module: object, name: string) {
    const own = (Reflect.get(module, name) as AnyFunction).bind(module)
    Reflect.set(module, name, (...args: never[]) => (this.#current ?? own)(...args))
    syncBuiltinESMExports()
  }

  /** Takes its place. Returns what gives it back. */
  take(instead: Function): () => void {
    this.#current = instead
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
  #workMs = 0
  /** When what runs has happened: before now if the process was busy then. */
  happenedAt = 0
  /** By time; of the same time, the first that was set. */
  readonly #timers: Timer[] = []
  readonly #arrivals: Timer[] = []
  readonly #immediates: Timer[] = []
  #random = 1
  #steps = 0

  /** Calls a function of the simulation later. */
  after(ms: number, run: () => void): Timer {
    return this.#add({ at: this.now + ms, run, isOfModel: true })
  }

  /** Calls a function once the event loop looks for what has come. */
  poll(run: () => void): void {
    this.#arrivals.push({ at: this.now, run, isOfModel: true })
  }

  clear(timer: Timer | undefined): void {
    if (timer === undefined) return
    timer.isCleared = true
    this.#remove(timer)
  }

  /** Has the process work for so long. */
  work(ms: number): void {
    this.now += ms
    this.#workMs += ms
    this.happenedAt = this.now
  }

  /** How many timers the code under test has set and not cleared. */
  get left(): number {
    return [...this.#timers, ...this.#immediates].filter(({ isOfModel }) => !isOfModel).length
  }

  /** Runs what is due until then, unless something stops it, each with all promises that it settles. */
  async passUntil(end: number, isStopped: () => boolean): Promise<void> {
    await allMicrotasks()
    while (!isStopped()) {
      const isDue = this.#arrivals.length + this.#immediates.length > 0
      const next = isDue ? this.now : (this.#timers[0]?.at ?? Infinity)
      if (next > end) break
      this.now = Math.max(this.now, next)
      this.loopCount++
      const until = Math.min(this.now, end)
      const due = this.#timers.filter(({ at }) => at <= until)
      for (const timer of due) {
        if (timer.isCleared || isStopped()) continue
        this.#remove(timer)
        if (timer.everyMs !== undefined) this.#add(Object.assign(timer, { at: this.now + timer.everyMs }))
        await this.#run(timer)
      }
      for (const phase of [this.#arrivals, this.#immediates]) {
        for (let left = phase.length; left > 0 && !isStopped(); left--) {
          const timer = phase.shift()!
          if (!timer.isCleared) await this.#run(timer)
        }
      }
    }
    this.now = Math.max(this.now, end)
  }

  /** Makes the rounds that code under test waits for: it may wait by what it shares with all that is played later. */
  async settle(): Promise<void> {
    for (let timer; (timer = this.#immediates.shift()) !== undefined;) if (!timer.isCleared) await this.#run(timer)
  }

  #run(timer: Timer): Promise<void> {
    if (++this.#steps > MAX_STEPS) throw new Error('It goes on for ever.')
    this.happenedAt = timer.at
    timer.run()
    return allMicrotasks()
  }

  /** Takes the place of the real time. Returns what gives it back. */
  install(): () => void {
    const set = (run: (...args: unknown[]) => void, ms = 1, ...args: unknown[]): object => {
      return this.#handle({ at: this.now + Math.max(1, ms), run: () => run(...args), isOfModel: false })
    }
    const clear = (timer: Timer | undefined): void => this.clear(timer)
    const setImmediate = (run: () => void): object => {
      const timer: Timer = { at: this.now, run, isOfModel: false }
      this.#immediates.push(timer)
      return timer
    }
    const functions = {
      setTimeout: set,
      setInterval: (run: () => void, ms = 1) => {
        return this.#handle({ at: this.now + ms, run, everyMs: Math.max(1, ms), isOfModel: false })
      },
      setImmediate,
      clearTimeout: clear,
      clearInterval: clear,
      clearImmediate: clear,
    }
    const restore = [
      replace(globalThis, functions),
      replace(timers, functions),
      replace(scheduler, { yield: () => new Promise<void>((resolve) => setImmediate(resolve)) }),
      replace(performance, {
        now: () => this.now,
        eventLoopUtilization: () => ({ active: this.#workMs }),
        nodeTiming: { uvMetricsInfo: this },
      }),
      replace(process, { cpuUsage: () => ({ user: 1000 * this.#workMs, system: 0 }) }),
      replace(Atomics, { wait: (_array: unknown, _index: number, _value: number, ms: number) => (this.now += ms) }),
      replace(Math, { random: () => (this.#random = (this.#random * 48_271) % 2_147_483_647) / 2_147_483_647 }),
    ]
    return () => {
      for (const each of restore) each()
    }
  }

  #handle(timer: Timer): object {
    const ms = timer.at - this.now
    const refresh = (): Timer => {
      this.#remove(timer)
      return this.#add(Object.assign(timer, { at: this.now + ms }))
    }
    return Object.assign(this.#add(timer), { unref: () => timer, ref: () => timer, refresh })
  }

  #add(timer: Timer): Timer {
    let place = this.#timers.length
    while (place > 0 && this.#timers[place - 1]!.at > timer.at) place--
    this.#timers.splice(place, 0, timer)
    return timer
  }

  #remove(timer: Timer): void {
    const place = this.#timers.indexOf(timer)
    if (place !== -1) this.#timers.splice(place, 1)
  }
}

/** Settles in the next round of the real event loop: all microtasks are done by then, however many there are. */
function allMicrotasks(): Promise<void> {
  return new Promise((resolve) => realRound(resolve))
}

/** Gives an object other functions. Returns what gives it back its own. */
function replace(target: object, functions: Record<string, unknown>): () => void {
  const before = Object.keys(functions).map((name) => [name, Object.getOwnPropertyDescriptor(target, name)] as const)
  for (const [name, value] of Object.entries(functions)) {
    Object.defineProperty(target, name, { value, configurable: true, writable: true })
  }
  return () => {
    for (const [name, own] of before) {
      if (own === undefined) Reflect.deleteProperty(target, name)
      else Object.defineProperty(target, name, own)
    }
  }
}
