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
export function checkHistory(operations: readonly Operation[], listings: readonly Listing[]): void {
  const listed = listings.map(({ start, end, plants }) => {
    const names = new Map(plants.map(({ id, name }) => [id, name]))
    assert.equal(names.size, plants.length, 'a list holds a plant twice')
    return { start, end, names }
  })
  const byId = new Map<number, Operation[]>()
  for (const { plants } of listings) for (const { id } of plants) byId.set(id, [])
  for (const { id } of operations) byId.set(id, [])
  for (const operation of operations) byId.get(operation.id)!.push(operation)
  for (const [id, own] of byId) {
    const views = listed.map(({ start, end, names }): Step => ({ start, end, finds: names.get(id) ?? null }))
    const steps = [...own.map(stepOf), ...views]
    assert.ok(fitsAnOrder(steps.sort((a, b) => a.start - b.start)), `the answers about ${id} fit no order`)
  }
}

/** What an answer says of one plant. */
interface Step {
  readonly start: number
  readonly end: number
  /** The name that the plant has before, null if there is no plant, undefined if any name will do. */
  readonly finds: string | null | undefined
  /** The name that the plant has afterwards, or null; absent if nothing changes. */
  readonly leaves?: string | null
  /** Whether it may never have happened. */
  readonly isOptional?: true
}

function stepOf({ kind, name, start, end, succeeded }: Operation): Step {
  if (succeeded === undefined) {
    const change = kind === 'create' ? { finds: null, leaves: name } : { finds: undefined, leaves: null }
    return { start, end: Infinity, ...change, isOptional: true }
  }
  if (kind === 'create') return succeeded ? { start, end, finds: null, leaves: name } : { start, end, finds: undefined }
  return succeeded ? { start, end, finds: undefined, leaves: null } : { start, end, finds: null }
}

function fits({ finds }: Step, plant: string | null) {
  return finds === undefined ? plant !== null : finds === plant
}

/**
 * Searches for an order as Wing and Gong do (Testing and Verifying Concurrent Objects, 1993): a step may come next
 * if no other one has ended before it starts.
 */
function fitsAnOrder(steps: readonly Step[]): boolean {
  const deadEnds = new Set<string>()

  function search(left: readonly Step[], plant: string | null): boolean {
    const firstEnd = left.reduce((first, { end }) => Math.min(first, end), Infinity)
    const next = left.filter((step) => step.start < firstEnd && fits(step, plant))
    // What changes nothing goes as soon as it can: no other order needs it later.
    const observations = new Set(next.filter(({ leaves }) => leaves === undefined))
    const rest = left.filter((step) => !observations.has(step))
    if (observations.size > 0) return search(rest, plant)
    if (left.every(({ isOptional }) => isOptional)) return true

    const state = `${plant} ${left.map(({ start }) => start).join()}`
    if (deadEnds.has(state)) return false
    deadEnds.add(state)
    return next.some((step) => search(left.toSpliced(left.indexOf(step), 1), step.leaves!))
  }

  return search(steps, null)
}
