import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EncodedPlant, encodePlant } from '../../src/plants/plant.ts'

test('encodes a plant without its id', () => {
  assert.equal(encodePlant({ id: 1n, name: 'a "fern"', tag: '' }), '{"name":"a \\"fern\\"","tag":""}')
})

test('leaves out a tag that is absent', () => {
  assert.equal(encodePlant({ id: 1n, name: '', tag: undefined }), '{"name":""}')
})

test('an encoded plant has the members of its text', () => {
  const { id, name, tag } = new EncodedPlant(1n, '{"name":"Fern","tag":"green"}')
  assert.deepEqual({ id, name, tag }, { id: 1n, name: 'Fern', tag: 'green' })
})

test('a plant keeps its text through its encoding', () => {
  const plant = { id: 1n, name: 'Żółta paproć "\\\n', tag: '日本の楓 🌵' }
  const { name, tag } = new EncodedPlant(1n, encodePlant(plant))
  assert.deepEqual({ id: 1n, name, tag }, plant)
})

test('an encoded plant may have no tag', () => {
  assert.equal(new EncodedPlant(1n, '{"name":"Fern"}').tag, undefined)
})
