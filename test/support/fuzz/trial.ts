import assert from 'node:assert/strict'
import { createRandom, type Random } from '../random.ts'
import { assertSound, findDifference } from './compare.ts'
import { converse, type Cut, type Outcome } from './conversation.ts'
import { chooseCuts, makeSequence } from './requests.ts'
import type { FuzzedServer, FuzzedService } from './service.ts'

/** In a JSON string, a run of the same few characters that is easier to read if it is counted. */
const RUN = /(.{1,8}?)\1{19,}/g

/** How many other cuts are tried before a shorter sequence counts as sound. */
const SHRINK_TRIES = 10

/** What one client sends: first as a whole, then, as another owner, cut into packets. */
export interface Trial {
  readonly requests: readonly Buffer[]
  readonly cuts: readonly Cut[]
  readonly pace: number
}

/** A trial with which something is wrong. */
export interface Finding extends Trial {
  readonly problem: string
  readonly outcomes: readonly Outcome[]
}

/** Makes the trial of a seed. */
export function makeTrial(random: Random): Trial {
  const requests = makeSequence(random)
  return { requests, cuts: makeCuts(requests, random), pace: random(2 ** 31) }
}

function makeCuts(requests: readonly Buffer[], random: Random): readonly Cut[] {
  return chooseCuts(requests, random).map((at) => ({ at, isAnswered: random(2) === 0 }))
}

/** Sends a sequence twice. Says what is wrong with what came of it, if anything is. */
export async function attempt(
  service: FuzzedService,
  kind: FuzzedServer,
  { requests, cuts, pace }: Trial,
): Promise<{ problem: string | undefined; outcomes: readonly Outcome[] }> {
  const bytes = Buffer.concat(requests)
  const outcomes: Outcome[] = []
  try {
    for (const at of [[], cuts]) {
      const outcome = await converse(service, bytes, at, pace)
      outcomes.push(outcome)
      assertSound(outcome, kind)
      assert.deepEqual(service.errors.splice(0), [], 'the host was told of an error')
    }
    return { problem: findDifference(outcomes[0]!, outcomes[1]!, kind, bytes), outcomes }
  } catch (error) {
    return { problem: (error as Error).message, outcomes }
  }
}

/** Leaves out the requests without which there is a problem still, be it another. */
export async function shrink(service: FuzzedService, kind: FuzzedServer, finding: Finding): Promise<Finding> {
  for (let i = 0; finding.requests.length > 1 && i < finding.requests.length; i++) {
    const requests = finding.requests.toSpliced(i, 1)
    for (let seed = 0; seed < SHRINK_TRIES; seed++) {
      const trial = { ...finding, requests, cuts: makeCuts(requests, createRandom(seed)) }
      const { problem, outcomes } = await attempt(service, kind, trial)
      if (problem !== undefined) return shrink(service, kind, { ...trial, problem, outcomes })
    }
  }
  return finding
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
