import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { openapi } from '../../../src/openapi/openapi.ts'
import { programDescription } from '../../../src/standalone/paths/program-description.ts'
import { emptyPlaces } from '../../support/package/empty-places.ts'

suite('the description of the program', () => {
  test('says something wherever it adds to that of the service', () => {
    const { tags, paths } = programDescription
    const own = Object.entries(paths).filter(([path]) => !(path in openapi.paths))
    // Nothing of it needs a token, and not every response has a header field of its own.
    const places = emptyPlaces({ tags, own }).filter((place) => !/\/(security|headers)$/.test(place))
    assert.deepEqual(places, [])
  })

  test('is of the server that it was read from', () => {
    assert.deepEqual(programDescription.servers, [{ url: '/' }])
  })

  test('says that each response to a GET of itself has an ETag', () => {
    const { 200: whole, 304: notModified } = programDescription.paths['/openapi.json'].get.responses
    for (const response of [whole, notModified]) {
      assert.deepEqual(response?.headers?.['ETag'], {
        description: 'Changes with the description (RFC 9110 section 8.8.3).',
        required: true,
        schema: { type: 'string' },
        example: '"k5Zl6FR3"',
      })
    }
  })
})
