// A simulation plays one order of events, chosen by a seed, against a model that knows what is true.
//
// To add a part, make a folder with a `Part`: an arbitrary of fast-check that makes scenarios (lists of what happens and
// when, as plain data, so that fast-check can shorten them), and a function that plays one. That function
//   - opens what is under test, over fakes that live in `world.time` and take what befalls them from the scenario;
//   - says what happens by `world.tell()`, which a failing seed prints;
//   - calls `world.expect()` for each rule, and ends when nothing more can happen.
// All that it waits for must come from `world.time`: no I/O, no worker, no real timer. Functions of Node's modules, such as
// `net.connect`, get a `Hook`. Then add a table of faults to it, and the part to `systems.ts`. `fc.noBias` around the
// scenarios keeps them long; weigh what is to meet, and look by `--mutants` whether it does.
import fc from 'fast-check'
import type { MutantsByFile } from './mutants.ts'
import { VirtualTime } from './virtual-time.ts'

/** What a simulation is about. */
export interface SimulatedSystem<Scenario = unknown> {
  readonly name: string
  readonly scenarios: fc.Arbitrary<Scenario>
  /** What the simulation must find. */
  readonly mutants: MutantsByFile
  play(scenario: Scenario, world: Simulation): Promise<void>
}

/** How long a history is shortened, in milliseconds. */
const MAX_SHRINK_MS = 20_000

type FaultSequence<T> = readonly (readonly [skipped: number, count: number, T])[]

/** What befalls those of a kind in turn: after so many that are quick and well, so many in a row. */
export function faultSequences<T>(
  fault: fc.Arbitrary<T>,
  maxSkipped: number,
  maxCount: number,
  maxLength: number,
): fc.Arbitrary<FaultSequence<T>> {
  const run = fc.tuple(fc.nat(maxSkipped), fc.integer({ min: 1, max: maxCount }), fault)
  return fc.array(run, { maxLength, size: 'max' })
}

/** A rule was broken. */
class RuleViolation extends Error {}

/** The time, and what has happened in it. */
export class Simulation {
  readonly time = new VirtualTime()
  readonly #history: unknown[][] = []
  #violation: RuleViolation | undefined
  readonly #cleanups: (() => unknown)[] = []
  /** Whether nothing bad befalls anybody any more. */
  isFaultFree = false

  /** Calls a function when the simulation is over. Those that were handed in last come first. */
  addCleanup(cleanup: () => unknown): void {
    this.#cleanups.unshift(cleanup)
  }

  async cleanUp(): Promise<void> {
    for (const cleanup of this.#cleanups) await cleanup()
  }

  log(...details: unknown[]): void {
    if (this.#violation === undefined) this.#history.push([this.time.now, ...details])
  }

  /** Notes that a rule is broken if something is not so. The first that is ends the run. */
  check(condition: boolean, rule: string, ...details: unknown[]): void {
    if (condition || this.#violation !== undefined) return
    this.log('BROKEN:', rule, ...details)
    this.#violation = new RuleViolation([rule, ...details].map(String).join(' '))
  }

  /** Gives each of a kind what befalls it, until all is well. */
  createFaultSource<T>(sequence: FaultSequence<T>): () => T | undefined {
    const faults = sequence.flatMap(([skipped, count, fault]) => [
      ...Array.from({ length: skipped }, () => undefined),
      ...Array.from({ length: count }, () => fault),
    ])
    let index = 0
    return () => (this.isFaultFree ? undefined : faults[index++])
  }

  /** Lets events begin, each so long after the one before. */
  async playEvents<Event>(
    events: readonly (readonly [ms: number, Event])[],
    handleEvent: (event: Event) => void,
  ): Promise<void> {
    for (const [ms, event] of events) {
      await this.advance(ms)
      this.log(event)
      handleEvent(event)
    }
    this.isFaultFree = true
  }

  throwIfViolated(): void {
    if (this.#violation !== undefined) throw this.#violation
  }

  /** Lets time pass, unless a rule is broken. */
  async advance(ms: number): Promise<void> {
    await this.time.advanceTo(this.time.now + ms, () => this.#violation !== undefined)
    this.throwIfViolated()
  }

  get history(): string {
    return this.#history
      .map(([time, ...details]) => `${String(time).padStart(8)} ms  ${details.map(formatDetail).join(' ')}`)
      .join('\n')
  }
}

/** Plays a scenario once, in a time of its own. */
async function runScenario<Scenario>(
  part: SimulatedSystem<Scenario>,
  scenario: Scenario,
  world: Simulation,
): Promise<void> {
  world.addCleanup(world.time.install())
  const onRejection = (reason: unknown): void => world.check(false, 'no promise is left rejected:', reason)
  process.on('unhandledRejection', onRejection)
  world.addCleanup(() => process.off('unhandledRejection', onRejection))
  try {
    await part.play(scenario, world)
    world.throwIfViolated()
  } finally {
    // What is thrown after the end is no part of this history.
    await world.time.drainImmediates().catch(() => undefined)
    await world.cleanUp()
  }
}

/** What a seed has broken, with its shortest history; undefined if nothing. */
export async function findViolation<Scenario>(
  system: SimulatedSystem<Scenario>,
  seed: number,
  isShrinking = true,
): Promise<string | undefined> {
  const deadline = performance.now() + MAX_SHRINK_MS
  const property = fc.asyncProperty(system.scenarios, async (scenario) => {
    if (performance.now() < deadline) await runScenario(system, scenario, new Simulation())
  })
  const { counterexample, failed } = await fc.check(property, { seed, numRuns: 1, endOnFailure: !isShrinking })
  if (!failed) return undefined
  if (!isShrinking) return ''
  const [scenario] = counterexample!
  const world = new Simulation()
  const settings = Object.entries(scenario as object).filter(([, value]) => !Array.isArray(value))
  world.log(Object.fromEntries(settings))
  const reason = await runScenario(system, scenario, world).then(() => 'nothing the second time', String)
  return `${system.name}, seed ${seed}: ${reason}\n${world.history}`
}

function formatDetail(detail: unknown): string {
  if (detail instanceof Error) return `${(detail as { code?: string }).code ?? detail.name}: ${detail.message}`
  if (detail === undefined) return ''
  const text =
    typeof detail === 'string'
      ? detail
      : JSON.stringify(detail, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value))
  return text.replace(/x{9,}/g, 'xxx…')
}
