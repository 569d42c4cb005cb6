import assert from 'node:assert/strict'
import fc from 'fast-check'
import { assertSound, findDifference } from './compare.ts'
import { converse, type Cut, type Outcome } from './conversation.ts'
import { requests } from './requests.ts'
import type { FuzzedServer, FuzzedService } from './service.ts'

/** In a JSON string, a run of the same few characters that is easier to read if it is counted. */
const RUN = /(.{1,8}?)\1{19,}/g

/** What one client sends: first as a whole, then, as another owner, cut into packets. */
export interface Trial {
  readonly requests: readonly Buffer[]
  readonly cuts: readonly Cut[]
  readonly pace: number
}

/** What came of a trial. */
export interface Finding extends Trial {
  /** What is wrong, if anything is. */
  readonly problem: string | undefined
  readonly outcomes: readonly Outcome[]
}

/** The parts of a request, of which it has as many as the bytes of the longest one that is cut at each byte. */
const PARTS = 200
const part = fc.oneof(fc.constant(0), fc.nat(PARTS - 1))
const cuts = fc.oneof(
  { weight: 99, arbitrary: fc.array(fc.record({ part, isAnswered: fc.boolean() }), { maxLength: 2 }) },
  fc.constant(Array.from({ length: PARTS }, (_, part) => ({ part, isAnswered: part % 2 === 0 }))),
)

/** Makes trials. Each request has cuts of its own, so that it can be left out without moving those of the others. */
export const trials: fc.Arbitrary<Trial> = fc.noBias(
  fc
    .record({
      pieces: fc.array(fc.record({ request: requests, cuts }), { minLength: 1, maxLength: 6 }),
      // Now and then more than a connection may have waiting.
      repeats: fc.oneof({ weight: 199, arbitrary: fc.constant(0) }, fc.integer({ min: 110, max: 150 })),
      pace: fc.nat(),
    })
    .map(({ pieces, repeats, pace }) => {
      const all = [...Array.from({ length: repeats }, () => ({ ...pieces[0]!, cuts: [] })), ...pieces]
      const places = new Map<number, boolean>()
      let start = 0
      for (const { request, cuts } of all) {
        for (const { part, isAnswered } of cuts) {
          places.set(start + Math.floor((part / PARTS) * request.length), isAnswered)
        }
        start += request.length
      }
      const sorted = [...places].sort(([a], [b]) => a - b).filter(([at]) => at > 0)
      return {
        requests: all.map(({ request }) => request),
        cuts: sorted.map(([at, isAnswered]) => ({ at, isAnswered })),
        pace,
      }
    }),
)

/** Sends a sequence twice. */
export async function attempt(service: FuzzedService, kind: FuzzedServer, trial: Trial): Promise<Finding> {
  const { requests, cuts, pace } = trial
  const bytes = Buffer.concat(requests)
  const outcomes: Outcome[] = []
  try {
    for (const at of [[], cuts]) {
      const outcome = await converse(service, bytes, at, pace)
      outcomes.push(outcome)
      assertSound(outcome, kind)
      assert.deepEqual(service.errors.splice(0), [], 'the host was told of an error')
    }
    return { ...trial, problem: findDifference(outcomes[0]!, outcomes[1]!, kind, bytes), outcomes }
  } catch (error) {
    return { ...trial, problem: (error as Error).message, outcomes }
  }
}

/** Says what is wrong, with what was sent and what came of it. */
export function describeFinding(finding: Finding): string {
  const outcomes = finding.outcomes.map(({ answers, rest, ...others }, i) => {
    const brief = answers.map(({ status, headers, body }) => [status, headers.get('connection'), body.slice(0, 60)])
    const shown = JSON.stringify({ answers: brief, rest: rest.slice(0, 200), ...others })
    return `${i === 0 ? 'whole' : 'split'}: ${countRuns(shown)}`
  })
  return [finding.problem, describeTrial(finding), ...outcomes].join('\n')
}

/** Says what was sent; a `!` stands where the client waited until it was answered. */
export function describeTrial({ requests, cuts, pace }: Trial): string {
  const lines = requests.map((request) => countRuns(JSON.stringify(request.toString('latin1'))))
  return `pace ${pace}, cut at ${cuts.map(({ at, isAnswered }) => (isAnswered ? `${at}!` : at)).join(' ')}\n${lines.join('\n')}`
}

/** Gives `"a" + " "×1000 + "b"` for a string with a thousand spaces. */
function countRuns(json: string): string {
  return json.replace(RUN, (run: string, unit: string) => `" + "${unit}"×${run.length / unit.length} + "`)
}
