import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { findDifference } from '../../src/conformance/steps.ts'
import type { NewPlant } from '../../src/plants/plant.ts'

test('what is no plant is shown', () => {
  const difference = findDifference([null], [], { limit: 1, maxBytes: 1000 })
  assert.equal(difference, 'must return plants whose id is a bigint. One is null.')
})

suite('two texts are shown', () => {
  const digits = '0123456789'
  const shown = (from: number, is: string, must: string): string =>
    `must return names to the letter. From character ${from} on, that of 1n is "${is}"…, and must be "${must}"….`
  const rows: readonly (readonly [how: string, actual: string, expected: string, complaint: string])[] = [
    ['from their start, if they part soon', 'Farn', 'Fern', shown(0, 'Farn', 'Fern')],
    ['from ten characters before they part', `${digits}abc`, `${digits}abd`, shown(2, '23456789abc', '23456789abd')],
    [
      'from there on for 30',
      `a${digits.repeat(9)}`,
      digits.repeat(9),
      shown(0, `a${digits.repeat(2)}012345678`, digits.repeat(3)),
    ],
    ['if one is the start of the other', 'Fern', 'Ferns', shown(0, 'Fern', 'Ferns')],
    ['if the other is the start of the one', 'Ferns', 'Fern', shown(0, 'Ferns', 'Fern')],
    ['in ASCII, with controls as escapes', ' ~é\u007f', ' ~\u0001楓', shown(0, ' ~\\u00e9\\u007f', ' ~\\u0001\\u6953')],
  ]
  for (const [how, actual, expected, complaint] of rows) {
    test(how, () => {
      const plants = (name: string): NewPlant[] => [{ id: 1n, name }]
      assert.equal(findDifference(plants(actual), plants(expected), { limit: 1, maxBytes: 1000 }), complaint)
    })
  }
})
