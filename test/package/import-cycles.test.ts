import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { test } from 'node:test'

const ROOT = join(import.meta.dirname, '../..')

/** Type imports count too, because files that need each other's types can only be understood together. */
const RELATIVE_IMPORT = /\b(?:from|import) ?\(?'(\.[^']*)'/g

const paths = ['src', 'test/support', 'bench'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /^(?!node_modules\/).*\.[jt]s$/.test(name))
    .map((name) => posix.join(folder, name)),
)

const imports = new Map(
  paths.map((path) => {
    const targets = readFileSync(join(ROOT, path), 'utf8').matchAll(RELATIVE_IMPORT)
    return [path, Array.from(targets, ([, target]) => posix.join(posix.dirname(path), target!))]
  }),
)

/** Returns the shortest chain of imports from a file to itself, or undefined if there is none. */
function findCycle(path: string): string[] | undefined {
  const chains = new Map<string, string[]>([['', [path]]])
  // The loop also visits the entries that it adds.
  for (const chain of chains.values()) {
    for (const target of imports.get(chain.at(-1)!) ?? []) {
      if (target === path) return [...chain, path]
      if (!chains.has(target)) chains.set(target, [...chain, target])
    }
  }
  return undefined
}

test('no file imports itself through other files', () => {
  assert.ok(imports.get('src/index.ts')!.includes('src/plant-store.ts'))
  assert.deepEqual(paths.map(findCycle).filter(Boolean), [])
})
