import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { findDifference } from '../../src/conformance/page-differences.ts'
import type { NewPlant } from '../../src/plants/plant.ts'
import type { PageRequest } from '../../src/plants/store.ts'

const FERN = { id: 1n, name: 'Fern', tag: 'green' }
const OAK = { id: 2n, name: 'Oak' }
const ROSE = { id: 3n, name: 'Rose' }

const NO_ID = 'must return plants whose id is a bigint.'

type Row = readonly [page: unknown, complaint: string | undefined, request?: Partial<PageRequest>]

/** Pages in the place of that with the fern and the oak. */
const PAGES: readonly Row[] = [
  [[FERN, OAK], undefined],
  [[FERN, { ...OAK, tag: undefined }], undefined],
  [[FERN, OAK], undefined, { limit: 2, after: 0n }],
  [undefined, 'must return an array. It returned undefined.'],
  [new Set([FERN]), "must return an array. It returned Set(1) { { id: 1n, name: 'Fern', tag: 'green' } }."],
  [[FERN, null], `${NO_ID} One is null.`],
  [[FERN, undefined], `${NO_ID} One is undefined.`],
  [[{ name: 'Fern' }, OAK], `${NO_ID} One is { name: 'Fern' }.`],
  [[{ ...FERN, id: 1 }, OAK], `${NO_ID} One is { id: 1, name: 'Fern', tag: 'green' }.`],
  [[FERN, OAK], 'must return at most limit plants: 1. It returned 2.', { limit: 1 }],
  [[FERN, OAK], 'must return only ids greater than after. One is 1n.', { after: 1n }],
  [[FERN, OAK], 'must return only ids greater than after. One is 1n.', { after: 2n }],
  [[OAK, FERN], 'must return plants ascending by id, each once. 1n follows 2n.'],
  [[FERN, FERN], 'must return plants ascending by id, each once. 1n follows 1n.'],
  [[FERN], 'must return every plant of the owner that is asked for. 2n is missing.'],
  [[FERN, ROSE], 'must return every plant of the owner that is asked for. 2n is missing.'],
  [[FERN, OAK, ROSE], "must return only plants that the owner has. One is { id: 3n, name: 'Rose' }."],
  [[FERN, { id: 2n }], 'must return names to the letter. That of 2n is undefined, and must be "Oak".'],
  [[{ ...FERN, tag: null }, OAK], 'must return tags to the letter. That of 1n is null, and must be "green".'],
  [[FERN, { ...OAK, tag: null }], 'must return no tag, or undefined, if the plant has none. That of 2n is null.'],
  [[FERN, { ...OAK, tag: '' }], "must return no tag, or undefined, if the plant has none. That of 2n is ''."],
  [
    [{ ...FERN, tag: 'grey' }, OAK],
    'must return tags to the letter. From character 0 on, that of 1n is "grey"…, and must be "green"….',
  ],
]

suite('of a page it is said', () => {
  for (const [page, complaint, request] of PAGES) {
    test(complaint ?? 'nothing if it is right', () => {
      assert.equal(findDifference(page, [FERN, OAK], { limit: 10, maxBytes: 1000, ...request }), complaint)
    })
  }
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
