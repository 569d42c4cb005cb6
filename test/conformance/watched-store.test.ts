import assert from 'node:assert/strict'
import { test } from 'node:test'
import { callText } from '../../src/conformance/watched-store.ts'

test('a call is shown on one line, with its long texts cut', () => {
  const plant = { id: 1n, name: 'x'.repeat(41), tag: 'y'.repeat(1000) }
  assert.equal(
    callText('create', 'owner', plant),
    `create('owner', { id: 1n, name: '${'x'.repeat(40)}'... 1 more character, tag: '${'y'.repeat(40)}'... 960 more characters })`,
  )
})
