import type { NewPlant } from '../plants/plant.ts'
import type { Page, PageRequest } from '../plants/store.ts'
import { quote } from './watched-store.ts'

export function findDifference(page: unknown, expected: Page, { limit, after }: PageRequest): string | undefined {
  if (!Array.isArray(page)) return `must return an array. It returned ${quote(page)}.`
  const wrong = page.findIndex((plant: Partial<NewPlant> | null | undefined) => typeof plant?.id !== 'bigint')
  if (wrong !== -1) return `must return plants whose id is a bigint. One is ${quote(page[wrong])}.`
  const plants = page as NewPlant[]

  if (plants.length > limit) return `must return at most limit plants: ${limit}. It returned ${plants.length}.`
  for (const [i, { id }] of plants.entries()) {
    const previous = plants[i - 1]?.id
    if (after !== undefined && id <= after) return `must return only ids greater than after. One is ${id}n.`
    if (previous !== undefined && id <= previous) {
      return `must return plants ascending by id, each once. ${id}n follows ${previous}n.`
    }
  }

  const [ids, expectedIds] = [plants, expected].map((list) => new Set(list.map(({ id }) => id)))
  const missing = expected.find(({ id }) => !ids!.has(id))
  if (missing) return `must return every plant of the owner that is asked for. ${missing.id}n is missing.`
  const foreign = plants.find(({ id }) => !expectedIds!.has(id))
  if (foreign) return `must return only plants that the owner has. One is ${quote(foreign)}.`

  for (const [i, { id, name, tag }] of expected.entries()) {
    const plant = plants[i]!
    if (plant.name !== name) return `must return names to the letter. ${compareTexts(id, plant.name, name)}`
    if (plant.tag === tag) continue
    if (tag !== undefined) return `must return tags to the letter. ${compareTexts(id, plant.tag, tag)}`
    return `must return no tag, or undefined, if the plant has none. That of ${id}n is ${quote(plant.tag)}.`
  }
  return undefined
}

function compareTexts(id: bigint, actual: unknown, expected: string): string {
  if (typeof actual !== 'string') return `That of ${id}n is ${quote(actual)}, and must be ${spell(expected)}.`
  let start = 0
  // They part where the shorter one ends, at the latest.
  while (actual[start] === expected[start]) start++
  const from = Math.max(0, start - 10)
  const [shown, wanted] = [actual, expected].map((text) => spell(text.slice(from, from + 30)))
  return `From character ${from} on, that of ${id}n is ${shown!}…, and must be ${wanted!}….`
}

/** A text in printable ASCII, with escapes for the rest. */
function spell(text: string): string {
  return JSON.stringify(text).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
