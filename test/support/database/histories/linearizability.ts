import assert from 'node:assert/strict'

/** A create or delete, and what came of it. Times only say what was before what. */
export interface Operation {
  readonly kind: 'create' | 'delete'
  readonly id: number
  /** What the plant was to be called; no two operations use the same name. */
  readonly name: string
  readonly start: number
  readonly end: number
  /** Undefined if nobody knows: then it took effect at some time after its start, or never. */
  readonly succeeded: boolean | undefined
}

/** A list of all plants. */
export interface Listing {
  readonly start: number
  readonly end: number
  readonly plants: readonly { readonly id: number; readonly name: string }[]
}

/**
 * Checks that what clients were answered is what one service that does one thing at a time could have answered:
 * that each operation and each list can be given a moment between its start and its end at which it took effect.
 * @throws AssertionError if it cannot
 */
export function assertLinearizable(operations: readonly Operation[], listings: readonly Listing[]): void {
  const listed = listings.map(({ start, end, plants }) => {
    const names = new Map(plants.map(({ id, name }) => [id, name]))
    assert.equal(names.size, plants.length, 'a list holds a plant twice')
    return { start, end, names }
  })
  const byId = new Map<number, Operation[]>()
  for (const { plants } of listings) for (const { id } of plants) byId.set(id, [])
  for (const { id } of operations) byId.set(id, [])
  for (const operation of operations) byId.get(operation.id)!.push(operation)
  for (const [id, plantOperations] of byId) {
    const listSteps = listed.map(({ start, end, names }): Step => ({ start, end, nameBefore: names.get(id) ?? null }))
    const steps = [...plantOperations.map(toStep), ...listSteps]
    assert.ok(isLinearizable(steps.sort((a, b) => a.start - b.start)), `the answers about ${id} fit no order`)
  }
}

/** What an answer says of one plant. */
interface Step {
  readonly start: number
  readonly end: number
  /** The name that the plant has before, null if there is no plant, undefined if any name will do. */
  readonly nameBefore: string | null | undefined
  /** The name that the plant has afterwards, or null; absent if nothing changes. */
  readonly nameAfter?: string | null
  /** Whether it may never have happened. */
  readonly isOptional?: true
}

function toStep({ kind, name, start, end, succeeded }: Operation): Step {
  if (succeeded === undefined) {
    const change =
      kind === 'create' ? { nameBefore: null, nameAfter: name } : { nameBefore: undefined, nameAfter: null }
    return { start, end: Infinity, ...change, isOptional: true }
  }
  if (kind === 'create')
    return succeeded ? { start, end, nameBefore: null, nameAfter: name } : { start, end, nameBefore: undefined }
  return succeeded ? { start, end, nameBefore: undefined, nameAfter: null } : { start, end, nameBefore: null }
}

function isApplicable({ nameBefore: finds }: Step, plant: string | null) {
  return finds === undefined ? plant !== null : finds === plant
}

/**
 * Searches for an order as Wing and Gong do (Testing and Verifying Concurrent Objects, 1993): a step may come next
 * if no other one has ended before it starts.
 */
function isLinearizable(steps: readonly Step[]): boolean {
  const visitedStates = new Set<string>()

  function search(remaining: readonly Step[], plant: string | null): boolean {
    const earliestEnd = remaining.reduce((earliest, { end }) => Math.min(earliest, end), Infinity)
    const next = remaining.filter((step) => step.start < earliestEnd && isApplicable(step, plant))
    // What changes nothing goes as soon as it can: no other order needs it later.
    const reads = new Set(next.filter(({ nameAfter: leaves }) => leaves === undefined))
    const withoutReads = remaining.filter((step) => !reads.has(step))
    if (reads.size > 0) return search(withoutReads, plant)
    if (remaining.every(({ isOptional }) => isOptional)) return true

    const state = `${plant} ${remaining.map(({ start }) => start).join()}`
    if (visitedStates.has(state)) return false
    visitedStates.add(state)
    return next.some((step) => search(remaining.toSpliced(remaining.indexOf(step), 1), step.nameAfter!))
  }

  return search(steps, null)
}
