import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Plant } from '../../../src/plants/plant.ts'
import { TOKEN, type Program } from '../program/program.ts'
import { checkHistory, type Listing, type Operation } from './histories/history.ts'

const SECONDS = Number(process.env['TEST_RACE_SECONDS'] ?? 5)
const IDS = 200

/**
 * Has clients of several programs want the same few plants of one owner, and checks that the programs act as one.
 * @throws AssertionError if they do not, or answered 503
 */
export async function race(
  t: TestContext,
  programs: readonly Program[],
  clients: number,
  token = TOKEN,
): Promise<void> {
  const operations: Operation[] = []
  const listings: Listing[] = []
  let clock = 0

  async function operate(program: Program, kind: Operation['kind'], id: number): Promise<void> {
    const start = clock++
    const name = `${id} ${start}`
    const body = JSON.stringify({ id, name })
    const [path, init] =
      kind === 'create' ? ['/plants', { method: 'POST', body }] : [`/plants/${id}`, { method: 'DELETE' }]
    const response = await program.fetch(path, init, token)
    await response.arrayBuffer()
    const [succeeded, refused] = kind === 'create' ? [200, 409] : [204, 404]
    assert.ok(response.status === succeeded || response.status === refused, `${kind} was answered ${response.status}`)
    operations.push({ kind, id, name, start, end: clock++, succeeded: response.status === succeeded })
  }

  async function list(program: Program): Promise<void> {
    const start = clock++
    const response = await program.fetch('/plants', {}, token)
    const plants = (await response.json()) as Plant[]
    assert.equal(response.status, 200)
    listings.push({ start, end: clock++, plants: plants.map(({ name }) => ({ id: parseInt(name), name })) })
    const ids = listings.at(-1)!.plants.map(({ id }) => id)
    assert.deepEqual(
      ids,
      ids.toSorted((a, b) => a - b),
    )
  }

  const deadline = performance.now() + SECONDS * 1000
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      const program = programs[client % programs.length]!
      while (performance.now() < deadline) {
        // Some ids are wanted more than others.
        const id = Math.floor(Math.random() ** 2 * IDS)
        if (Math.random() < 0.05) await list(program)
        else await operate(program, Math.random() < 0.5 ? 'create' : 'delete', id)
      }
    }),
  )
  await list(programs[0]!)

  t.diagnostic(`${operations.length} operations, ${listings.length} lists`)
  checkHistory(operations, listings)
  for (const kind of ['create', 'delete']) {
    assert.ok(operations.some((operation) => operation.kind === kind && operation.succeeded))
    assert.ok(operations.some((operation) => operation.kind === kind && !operation.succeeded))
  }
}
