// A simulation plays one order of events, chosen by a seed, against a model that knows what is true.
//
// To add a part, make a folder with a `Part`: an arbitrary of fast-check that makes scenarios (lists of what happens and
// when, as plain data, so that fast-check can shorten them), and a function that plays one. That function
//   - opens what is under test, over fakes that live in `world.time` and take what befalls them from the scenario;
//   - says what happens by `world.tell()`, which a failing seed prints;
//   - calls `world.expect()` for each rule, and ends when nothing more can happen.
// All that it waits for must come from `world.time`: no I/O, no worker, no real timer. Functions of Node's modules, such as
// `net.connect`, get a `Hook`. Then add a table of faults to it, and the part to `parts.ts`. `fc.noBias` around the
// scenarios keeps them long; weigh what is to meet, and look by `--faults` whether it does.
import fc from 'fast-check'
import type { Faults } from './faults.ts'
import { VirtualTime } from './virtual-time.ts'

/** What a simulation is about. */
export interface Part<Scenario = unknown> {
  readonly name: string
  readonly scenarios: fc.Arbitrary<Scenario>
  /** What the simulation must find. */
  readonly faults: Faults
  play(scenario: Scenario, world: World): Promise<void>
}

/** How long a history is shortened, in milliseconds. */
const SHRINK_MS = 20_000

type Befalls<T> = readonly (readonly [skipped: number, count: number, T])[]

/** What befalls those of a kind in turn: after so many that are quick and well, so many in a row. */
export function befalls<T>(
  what: fc.Arbitrary<T>,
  maxSkipped: number,
  maxCount: number,
  maxLength: number,
): fc.Arbitrary<Befalls<T>> {
  const row = fc.tuple(fc.nat(maxSkipped), fc.integer({ min: 1, max: maxCount }), what)
  return fc.array(row, { maxLength, size: 'max' })
}

/** A rule was broken. */
class Violation extends Error {}

/** The time, and what has happened in it. */
export class World {
  readonly time = new VirtualTime()
  readonly #history: unknown[][] = []
  #violation: Violation | undefined
  readonly #endings: (() => unknown)[] = []
  /** Whether nothing bad befalls anybody any more. */
  isWell = false

  /** Calls a function when the simulation is over. Those that were handed in last come first. */
  atEnd(run: () => unknown): void {
    this.#endings.unshift(run)
  }

  async end(): Promise<void> {
    for (const run of this.#endings) await run()
  }

  tell(...words: unknown[]): void {
    if (this.#violation === undefined) this.#history.push([this.time.now, ...words])
  }

  /** Notes that a rule is broken if something is not so. The first that is ends the run. */
  expect(isSo: boolean, rule: string, ...words: unknown[]): void {
    if (isSo || this.#violation !== undefined) return
    this.tell('BROKEN:', rule, ...words)
    this.#violation = new Violation([rule, ...words].map(String).join(' '))
  }

  /** Gives each of a kind what befalls it, until all is well. */
  inTurn<T>(befalls: Befalls<T>): () => T | undefined {
    const fates = befalls.flatMap(([skipped, count, what]) => [
      ...Array.from({ length: skipped }, () => undefined),
      ...Array.from({ length: count }, () => what),
    ])
    let at = 0
    return () => (this.isWell ? undefined : fates[at++])
  }

  /** Lets events begin, each so long after the one before. */
  async begin<Event>(events: readonly (readonly [ms: number, Event])[], begin: (event: Event) => void): Promise<void> {
    for (const [ms, event] of events) {
      await this.pass(ms)
      this.tell(event)
      begin(event)
    }
    this.isWell = true
  }

  throwIfBroken(): void {
    if (this.#violation !== undefined) throw this.#violation
  }

  /** Lets time pass, unless a rule is broken. */
  async pass(ms: number): Promise<void> {
    await this.time.passUntil(this.time.now + ms, () => this.#violation !== undefined)
    this.throwIfBroken()
  }

  get history(): string {
    return this.#history
      .map(([at, ...words]) => `${String(at).padStart(8)} ms  ${words.map(show).join(' ')}`)
      .join('\n')
  }
}

/** Plays a scenario once, in a time of its own. */
async function play<Scenario>(part: Part<Scenario>, scenario: Scenario, world: World): Promise<void> {
  world.atEnd(world.time.install())
  const onRejection = (reason: unknown): void => world.expect(false, 'no promise is left rejected:', reason)
  process.on('unhandledRejection', onRejection)
  world.atEnd(() => process.off('unhandledRejection', onRejection))
  try {
    await part.play(scenario, world)
    world.throwIfBroken()
  } finally {
    // What is thrown after the end is no part of this history.
    await world.time.settle().catch(() => undefined)
    await world.end()
  }
}

/** What a seed has broken, with its shortest history; undefined if nothing. */
export async function findFault<Scenario>(
  part: Part<Scenario>,
  seed: number,
  shrinks = true,
): Promise<string | undefined> {
  const end = performance.now() + SHRINK_MS
  const property = fc.asyncProperty(part.scenarios, async (scenario) => {
    if (performance.now() < end) await play(part, scenario, new World())
  })
  const { counterexample, failed } = await fc.check(property, { seed, numRuns: 1, endOnFailure: !shrinks })
  if (!failed) return undefined
  if (!shrinks) return ''
  const [scenario] = counterexample!
  const world = new World()
  const settings = Object.entries(scenario as object).filter(([, value]) => !Array.isArray(value))
  world.tell(Object.fromEntries(settings))
  const reason = await play(part, scenario, world).then(() => 'nothing the second time', String)
  return `${part.name}, seed ${seed}: ${reason}\n${world.history}`
}

function show(word: unknown): string {
  if (word instanceof Error) return `${(word as { code?: string }).code ?? word.name}: ${word.message}`
  if (word === undefined) return ''
  const text =
    typeof word === 'string'
      ? word
      : JSON.stringify(word, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
  return text.replace(/x{9,}/g, 'xxx…')
}
