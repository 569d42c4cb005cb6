import { syncBuiltinESMExports } from 'node:module'
import timersPromises from 'node:timers/promises'

/** More than any scenario takes. */
const MAX_STEPS = 10_000

interface Timer {
  at: number
  readonly run: () => void
  /** How long until it runs again; undefined if it runs once. */
  readonly everyMs?: number | undefined
  /** Whether the simulation has set it, and not the code under test. */
  readonly isOfModel: boolean
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

const sleep = new Hook<(ms: number) => Promise<void>>(timersPromises, 'setTimeout')

/**
 * The time of a simulation. It stands still while code runs, and then goes to the next timer, so a minute takes as long
 * as what happens in it. While it is installed, timers, immediates, sleeps, `performance.now` and `Math.random` are its
 * own, so all that happens is the same each time.
 */
export class VirtualTime {
  now = 1000
  /** By time; of the same time, the first that was set. */
  readonly #timers: Timer[] = []
  #random = 1
  #steps = 0

  /** Calls a function of the simulation later. */
  after(ms: number, run: () => void): Timer {
    return this.#add({ at: this.now + ms, run, isOfModel: true })
  }

  /** How many timers the code under test has set and not cleared. */
  get left(): number {
    return this.#timers.filter(({ isOfModel }) => !isOfModel).length
  }

  /** Runs what is due until then, unless something stops it, each with all promises that it settles. */
  async passUntil(end: number, isStopped: () => boolean): Promise<void> {
    await allMicrotasks()
    for (let next; (next = this.#timers[0]) !== undefined && next.at <= end && !isStopped();) {
      if (++this.#steps > MAX_STEPS) throw new Error('It goes on for ever.')
      this.#timers.shift()
      this.now = Math.max(this.now, next.at)
      if (next.everyMs !== undefined) this.#add(Object.assign(next, { at: this.now + next.everyMs }))
      next.run()
      await allMicrotasks()
    }
    this.now = Math.max(this.now, end)
  }

  /** Takes the place of the real time. Returns what gives it back. */
  install(): () => void {
    const set = (run: (...args: unknown[]) => void, ms = 1, ...args: unknown[]): object => {
      return this.#handle({ at: this.now + Math.max(1, ms), run: () => run(...args), isOfModel: false })
    }
    const clear = (timer: unknown): void => this.#clear(timer as Timer | undefined)
    const globals = {
      setTimeout: set,
      setInterval: (run: () => void, ms = 1) => {
        return this.#handle({ at: this.now + ms, run, everyMs: Math.max(1, ms), isOfModel: false })
      },
      setImmediate: (run: () => void) => this.#handle({ at: this.now, run, isOfModel: false }),
      clearTimeout: clear,
      clearInterval: clear,
      clearImmediate: clear,
    }
    const restore = [
      replace(globalThis, globals),
      replace(performance, { now: () => this.now }),
      replace(Math, { random: () => (this.#random = (this.#random * 48_271) % 2_147_483_647) / 2_147_483_647 }),
      sleep.take((ms) => new Promise((resolve) => set(() => resolve(), ms))),
    ]
    return () => {
      for (const each of restore) each()
    }
  }

  #handle(timer: Timer): object {
    return Object.assign(this.#add(timer), { unref: () => timer, ref: () => timer })
  }

  #add(timer: Timer): Timer {
    let place = this.#timers.length
    while (place > 0 && this.#timers[place - 1]!.at > timer.at) place--
    this.#timers.splice(place, 0, timer)
    return timer
  }

  #clear(timer: Timer | undefined): void {
    const place = timer === undefined ? -1 : this.#timers.indexOf(timer)
    if (place !== -1) this.#timers.splice(place, 1)
  }
}

/** Settles when all microtasks are done, however many there are, and so are the rounds that `later-round.ts` waits for. */
async function allMicrotasks(): Promise<void> {
  do await new Promise<void>((resolve) => realRound(resolve))
  while (process.getActiveResourcesInfo().includes('Immediate'))
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
