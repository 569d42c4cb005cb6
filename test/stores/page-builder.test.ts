import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { encodeFields } from '../../src/plants/plant.ts'
import { PageBuilder } from '../../src/stores/page-builder.ts'

/** Texts with characters that take more than one byte in JSON or in UTF-8. */
const text = fc.string({ unit: fc.constantFrom('x', '楓', '🌿', '\n', '"', '\\', '\u0001'), maxLength: 40 })

const plants = fc.array(fc.record({ name: text, tag: fc.option(text, { nil: undefined }) }), { minLength: 1 })

test('PageBuilder ends a page at limit or maxBytes, whichever is reached first', () => {
  const bound = fc.integer({ min: 1, max: 500 })
  const property = fc.property(plants, bound, bound, (plants, limit, maxBytes) => {
    const builder = new PageBuilder({ limit, maxBytes })
    let bytes = 0
    for (const [at, { name, tag }] of plants.entries()) {
      const isAdded = builder.add(BigInt(at), encodeFields({ id: BigInt(at), name, tag }))
      assert.equal(isAdded, at < limit && bytes < maxBytes)
      assert.equal(builder.page.hasMore, !isAdded)
      assert.equal(builder.page.plants.length, isAdded ? at + 1 : at)
      if (!isAdded) return
      bytes += Buffer.byteLength(name + (tag ?? ''))
    }
  })
  fc.assert(property, { numRuns: 1000 })
})
