// The costs of listing a page and of creating a plant in the memory store. Neither may grow with the number of plants.
import { MAX_PAGE_BYTES } from '../../dist/plants/store.js'
import { memoryStore } from '../../dist/stores/memory-store.js'
import { compare, printRows } from './compare.ts'

const OWNER = 'bench'
const PAGE = { limit: 100, maxBytes: MAX_PAGE_BYTES }
const SIZES = [1e3, 1e4, 1e5, 1e6]

/**
 * Returns the nth id of a pseudorandom order without repetition: the factor is odd, so multiplying by it permutes the
 * residues modulo 2^29.
 */
const scatteredId = (n) => BigInt(Math.imul(n, 0x9e3779b1) & 0x1fffffff)
const ascendingId = (n) => BigInt(n)
const plant = (id) => ({ id, name: 'Monstera deliciosa', tag: 'tropical' })

function createFilledStore(size, nthId) {
  const store = memoryStore()
  for (let n = 0; n < size; n++) store.create(OWNER, plant(nthId(n)))
  return store
}

/** Returns a store in which `size` plants were created and the 90% with the lowest ids were deleted. */
function createThinnedStore(size) {
  const store = createFilledStore(size, ascendingId)
  for (let n = 0; n < size * 0.9; n++) store.delete(OWNER, ascendingId(n))
  return store
}

for (const [state, createStore, highest] of [
  ['ascending ids', (size) => createFilledStore(size, ascendingId), (size) => size],
  ['scattered ids', (size) => createFilledStore(size, scatteredId), () => 2 ** 29],
  ['the lowest 90 % deleted', createThinnedStore],
]) {
  const first = {}
  const anywhere = {}
  for (const size of SIZES) {
    const store = createStore(size)
    first[`${size} plants`] = () => store.list(OWNER, PAGE)
    if (highest === undefined) continue
    // Cursors spread over the whole store, except near its end, where a page would be short.
    const step = (highest(size) * 0.85) / 1021
    const cursors = Array.from({ length: 1021 }, (_, n) => BigInt(Math.floor(step * n)))
    let cursorIndex = 0
    anywhere[`${size} plants`] = () =>
      store.list(OWNER, { ...PAGE, after: cursors[(cursorIndex = (cursorIndex + 367) % 1021)] })
  }
  compare(`first page of 100, ${state}`, first)
  if (highest !== undefined) compare(`page of 100 at a random position, ${state}`, anywhere)
}

for (const [order, nthId] of [
  ['ascending', ascendingId],
  ['scattered', scatteredId],
]) {
  printRows(
    `create, ${order} ids, with existing plants`,
    SIZES.map((size) => {
      const store = createFilledStore(size, nthId)
      return { name: `${size} plants`, times: Array.from({ length: 15 }, () => timeCreates(store, size, nthId)) }
    }),
  )
}

/**
 * Returns the CPU time of one create, in nanoseconds. The created plants are deleted after each batch, which isn't
 * measured.
 */
function timeCreates(store, size, nthId) {
  const COUNT = 500
  const BATCHES = 40
  let time = 0
  for (let batch = 0; batch < BATCHES; batch++) {
    const plants = Array.from({ length: COUNT }, (_, n) => plant(nthId(size + batch * COUNT + n)))
    const before = process.cpuUsage()
    for (const created of plants) store.create(OWNER, created)
    const { user, system } = process.cpuUsage(before)
    time += user + system
    for (const { id } of plants) store.delete(OWNER, id)
  }
  return (time * 1000) / (COUNT * BATCHES)
}
