// Deterministic simulation tests: a seed selects the order and timing of all events, and the results are checked
// against a reference model.
//
// To add a system, create a folder that exports a `SimulatedSystem`: a fast-check arbitrary that generates scenarios
// (lists of timed events as plain data, so that fast-check can shrink them), and a function that plays one. That
// function
//   - creates the code under test on top of fakes that run in `world.time` and get their faults from the scenario,
//   - logs events with `world.log()`, which are printed for a failing seed,
//   - calls `world.check()` for each rule, and returns when nothing more can happen. The function can only wait for
// `world.time`: no I/O, no workers, no real timers. Replace functions in Node's modules, such as `net.connect`, with a
// `Stub`. Then write mutants for the system and add it to `systems.ts`. `fc.noBias` around the scenarios keeps them
// long. Choose weights that make interesting events coincide, and check the effect with `--mutants`.
import fc from 'fast-check'
import type { MutantsByFile } from './mutants.ts'
import { VirtualTime } from './virtual-time.ts'

/** A part of the software that can be simulated. */
export interface SimulatedSystem<Scenario = unknown> {
  readonly name: string
  readonly scenarios: fc.Arbitrary<Scenario>
  /** Bugs that the simulation has to detect. */
  readonly mutants: MutantsByFile
  play(scenario: Scenario, world: Simulation): Promise<void>
}

/** Time limit for shrinking a failing scenario, in milliseconds. */
const MAX_SHRINK_MS = 20_000

type FaultSequence<T> = readonly (readonly [skipped: number, count: number, T])[]

/** Generates sequences of faults: `skipped` operations succeed, then the fault occurs `count` times in a row. */
export function faultSequences<T>(
  fault: fc.Arbitrary<T>,
  maxSkipped: number,
  maxCount: number,
  maxLength: number,
): fc.Arbitrary<FaultSequence<T>> {
  const run = fc.tuple(fc.nat(maxSkipped), fc.integer({ min: 1, max: maxCount }), fault)
  return fc.array(run, { maxLength, size: 'max' })
}

class RuleViolation extends Error {}

/** The world of one scenario: virtual time, history, faults and rule checks. */
export class Simulation {
  readonly time = new VirtualTime()
  readonly #history: unknown[][] = []
  #violation: RuleViolation | undefined
  readonly #cleanups: (() => unknown)[] = []
  /** Whether faults are no longer injected. */
  isFaultFree = false

  /** Registers a function to call after the simulation. The last one is called first. */
  addCleanup(cleanup: () => unknown): void {
    this.#cleanups.unshift(cleanup)
  }

  async cleanUp(): Promise<void> {
    for (const cleanup of this.#cleanups) await cleanup()
  }

  log(...details: unknown[]): void {
    if (this.#violation === undefined) this.#history.push([this.time.now, ...details])
  }

  /** Records a rule violation if `condition` is false. The first violation ends the run. */
  check(condition: boolean, rule: string, ...details: unknown[]): void {
    if (condition || this.#violation !== undefined) return
    this.log('VIOLATED:', rule, ...details)
    this.#violation = new RuleViolation([rule, ...details].map(String).join(' '))
  }

  /** Returns a function that returns the next fault on each call, or undefined if none is due. */
  createFaultSource<T>(sequence: FaultSequence<T>): () => T | undefined {
    const faults = sequence.flatMap(([skipped, count, fault]) => [
      ...Array.from({ length: skipped }, () => undefined),
      ...Array.from({ length: count }, () => fault),
    ])
    let index = 0
    return () => (this.isFaultFree ? undefined : faults[index++])
  }

  /** Plays events, each `ms` after the previous one. No faults are injected after the last one. */
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

  /** Advances the virtual time. Throws as soon as a rule is violated. */
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

/** Plays a scenario in its own virtual time. */
async function runScenario<Scenario>(
  system: SimulatedSystem<Scenario>,
  scenario: Scenario,
  world: Simulation,
): Promise<void> {
  world.addCleanup(world.time.install())
  const onRejection = (reason: unknown): void => world.check(false, 'no rejection is unhandled:', reason)
  process.on('unhandledRejection', onRejection)
  world.addCleanup(() => process.off('unhandledRejection', onRejection))
  try {
    await system.play(scenario, world)
    world.throwIfViolated()
  } finally {
    // Errors after the end no longer belong to this scenario.
    await world.time.drainImmediates().catch(() => undefined)
    await world.cleanUp()
  }
}

/** Runs a seed. Returns the violation and its shortest history, or undefined if no rule was violated. */
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
  const reason = await runScenario(system, scenario, world).then(() => 'not reproducible', String)
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
