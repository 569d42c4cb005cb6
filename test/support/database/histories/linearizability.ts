import assert from 'node:assert/strict'

/** A create or delete and its result. `start` and `end` are logical times. */
export interface Operation {
  readonly kind: 'create' | 'delete'
  readonly id: number
  /** The name of the plant; unique among all operations. */
  readonly name: string
  readonly start: number
  readonly end: number
  /** Undefined if the outcome is unknown: the operation took effect at some time after its start, or never. */
  readonly succeeded: boolean | undefined
}

/** The result of listing all plants. */
export interface Listing {
  readonly start: number
  readonly end: number
  readonly plants: readonly { readonly id: number; readonly name: string }[]
}

/**
 * Checks that a history is linearizable: each operation and each list may have taken effect at one point in time
 * between its start and its end, as if one service had executed them one after another.
 * @throws AssertionError if it isn't
 */
export function assertLinearizable(operations: readonly Operation[], listings: readonly Listing[]): void {
  const listed = listings.map(({ start, end, plants }) => {
    const names = new Map(plants.map(({ id, name }) => [id, name]))
    assert.equal(names.size, plants.length, 'a list contains a plant twice')
    return { start, end, names }
  })
  const byId = new Map<number, Operation[]>()
  for (const { plants } of listings) for (const { id } of plants) byId.set(id, [])
  for (const { id } of operations) byId.set(id, [])
  for (const operation of operations) byId.get(operation.id)!.push(operation)
  for (const [id, plantOperations] of byId) {
    const listSteps = listed.map(({ start, end, names }): Step => ({ start, end, nameBefore: names.get(id) ?? null }))
    const steps = [...plantOperations.map(toStep), ...listSteps]
    assert.ok(
      isLinearizable(steps.sort((a, b) => a.start - b.start)),
      `no order of the operations explains the results for plant ${id}`,
    )
  }
}

/** An operation or list as a transition of one plant. */
interface Step {
  readonly start: number
  readonly end: number
  /** The required name of the plant before the step: null for no plant, undefined for a plant with any name. */
  readonly nameBefore: string | null | undefined
  /** The name after the step, or null for no plant; absent if nothing changes. */
  readonly nameAfter?: string | null
  /** Whether the step may never have taken effect. */
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
 * Searches for an order with the algorithm of Wing and Gong (Testing and Verifying Concurrent Objects, 1993): a step
 * may be next if no other remaining step ended before its start.
 */
function isLinearizable(steps: readonly Step[]): boolean {
  const visitedStates = new Set<string>()

  function search(remaining: readonly Step[], plant: string | null): boolean {
    const earliestEnd = remaining.reduce((earliest, { end }) => Math.min(earliest, end), Infinity)
    const next = remaining.filter((step) => step.start < earliestEnd && isApplicable(step, plant))
    // Steps that change nothing come as early as possible: delaying them never helps.
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
