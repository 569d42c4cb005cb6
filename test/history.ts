import assert from 'node:assert/strict'

/** A create or delete, and what came of it. Times only say what was before what. */
export interface Operation {
  readonly kind: 'create' | 'delete'
  readonly id: number
  /** What the plant was to be called; no two operations use the same name. */
  readonly name: string
  readonly start: number
  readonly end: number
  readonly succeeded: boolean
}

/** A list of all plants, as names in the order of their ids. */
export interface Listing {
  readonly start: number
  readonly end: number
  readonly names: readonly string[]
}

/**
 * Checks that what clients were answered is what one service that does one thing at a time could have answered:
 * each operation took effect at some moment between its start and its end.
 * @throws AssertionError where it could not
 */
export function checkHistory(operations: readonly Operation[], listings: readonly Listing[]): void {
  const creates = new Map(operations.filter(({ kind }) => kind === 'create').map((create) => [create.name, create]))
  for (const [id, ofPlant] of groupById(operations)) {
    const effects = orderOfEffects(id, ofPlant.filter(({ succeeded }) => succeeded))
    for (const operation of ofPlant.filter(({ succeeded }) => !succeeded)) {
      const isPresent = presence(effects, operation)
      if (isPresent !== undefined) assert.equal(isPresent, operation.kind === 'create', describe('was refused', operation))
    }
    for (const listing of listings) {
      const listed = listing.names.filter((name) => creates.get(name)?.id === id)
      const isPresent = presence(effects, listing)
      assert.ok(listed.length <= 1, `${id} is listed more than once`)
      if (isPresent !== undefined) assert.equal(listed.length === 1, isPresent, `${id} in the list at ${listing.start}`)
      for (const name of listed) checkListed(creates.get(name)!, effects, listing)
    }
  }
  for (const { names } of listings) {
    const ids = names.map((name) => creates.get(name)?.id)
    assert.ok(ids.every((id, i) => id !== undefined && (i === 0 || id > ids[i - 1]!)), 'a list is out of order')
  }
}

/**
 * Creates and deletes of a plant that succeeded take turns. At each turn the one that has to end first goes: where
 * another choice leads to an order, this one does.
 */
function orderOfEffects(id: number, successes: readonly Operation[]): Operation[] {
  const left = {
    create: successes.filter(({ kind }) => kind === 'create').sort((a, b) => a.end - b.end),
    delete: successes.filter(({ kind }) => kind === 'delete').sort((a, b) => a.end - b.end),
  }
  const effects: Operation[] = []
  let now = -Infinity
  while (effects.length < successes.length) {
    const candidates = left[effects.length % 2 === 0 ? 'create' : 'delete']
    now = Math.max(now, Math.min(...candidates.map(({ start }) => start)))
    const index = candidates.findIndex(({ start }) => start <= now)
    const [next] = candidates.splice(index, 1)
    assert.ok(next !== undefined && next.end >= now, `creates and deletes of ${id} do not take turns at ${now}`)
    effects.push(next)
  }
  return effects
}

/** Whether a plant was there all the time from start to end, or at no time; undefined where it may have changed. */
function presence(effects: readonly Operation[], { start, end }: Pick<Operation, 'start' | 'end'>): boolean | undefined {
  if (effects.some((effect) => effect.start < end && effect.end > start)) return undefined
  return effects.findLast((effect) => effect.end < start)?.kind === 'create'
}

function checkListed(create: Operation, effects: readonly Operation[], { start, end }: Listing): void {
  assert.ok(create.succeeded && create.start < end, describe('is listed', create))
  const isGone = effects.some(({ kind, ...del }) => kind === 'delete' && del.start > create.end && del.end < start)
  assert.ok(!isGone, describe('is listed after it was deleted', create))
}

function groupById(operations: readonly Operation[]): Map<number, Operation[]> {
  const groups = new Map<number, Operation[]>()
  for (const operation of operations) {
    const group = groups.get(operation.id)
    if (group === undefined) groups.set(operation.id, [operation])
    else group.push(operation)
  }
  return groups
}

function describe(what: string, { kind, id, name, start, end }: Operation): string {
  return `${kind} of ${id} as "${name}" from ${start} to ${end} ${what}`
}
