import assert from 'node:assert/strict'
import { ERRORS } from '../../src/http/errors.ts'
import { PLANT_TEXTS } from '../../src/plants/plant.ts'
import type { RawResponse } from './parse-responses.ts'

/** Errors that a client may cause while the service works correctly. */
const CLIENT_ERRORS: ReadonlySet<number> = new Set(
  Object.values(ERRORS)
    .map(({ error }) => error)
    .filter((error) => error < 50000 || error === ERRORS.unsupportedTransferCoding.error),
)

/** Statuses of the empty responses with which `node:http` itself rejects a request. */
const REJECTED_BY_NODE: ReadonlySet<number> = new Set([400, 413, 417, 431])

/**
 * Asserts that a response is one that the contract allows for some request.
 * @param isPlainServer whether this is a plain `node:http` server, which rejects some requests without a JSON body
 */
export function assertContractResponse({ status, headers, body }: RawResponse, isPlainServer: boolean): void {
  const type = headers.get('content-type')
  if (type === undefined) {
    const isRejectedByNode = isPlainServer && REJECTED_BY_NODE.has(status)
    assert.ok(status === 100 || status === 204 || isRejectedByNode, `status ${status} without a Content-Type`)
    assert.equal(body, '')
    return
  }
  assert.equal(type, 'application/json')
  const isSuccess = status === 200
  // A response to HEAD has the same headers and no body.
  if (body === '') assert.ok(isSuccess || status >= 400)
  else if (isSuccess) assertPlants(JSON.parse(body))
  else assertError(status, JSON.parse(body))
}

function assertPlants(value: unknown): void {
  const isList = Array.isArray(value)
  for (const plant of isList ? (value as unknown[]) : [value]) {
    const { id, ...texts } = plant as Record<string, unknown>
    assert.ok(id === undefined || (isList && typeof id === 'number'))
    assert.equal(typeof texts['name'], 'string')
    for (const [name, text] of Object.entries(texts)) {
      assert.ok(name in PLANT_TEXTS && typeof text === 'string', name)
    }
  }
}

function assertError(status: number, value: unknown): void {
  const { error, message, ...rest } = value as Record<string, unknown>
  assert.ok(typeof error === 'number' && CLIENT_ERRORS.has(error), `unexpected error code ${String(error)}`)
  assert.equal(status, Math.trunc(error / 100))
  assert.ok(typeof message === 'string' && message !== '')
  assert.deepEqual(rest, {})
}
