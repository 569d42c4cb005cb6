import fc from 'fast-check'
import type { Cut } from './conversation.ts'
import { requests } from './requests.ts'

/** What one client sends: first as a whole, then, as another owner, cut into packets. */
export interface Trial {
  readonly requests: readonly string[]
  readonly cuts: readonly Cut[]
  readonly pace: number
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
