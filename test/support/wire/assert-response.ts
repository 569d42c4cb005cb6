import assert from 'node:assert/strict'
import { ERRORS } from '../../../src/http/errors.ts'
import type { RawResponse } from './parse-responses.ts'

/** The errors that a client can bring about, however well the service is. */
const CLIENT_ERRORS: ReadonlySet<number> = new Set(
  Object.values(ERRORS)
    .map(({ error }) => error)
    .filter((error) => error < 50000 || error === ERRORS.unsupportedTransferCoding.error),
)

/** What `node:http` answers itself to a request that it refuses, without a body. */
const REJECTED_BY_NODE: ReadonlySet<number> = new Set([400, 413, 417, 431])

/**
 * Checks that an answer is one of the contract's, whatever was asked.
 * @param isPlainServer whether `node:http` may refuse a request in its own way
 */
export function assertContractResponse({ status, headers, body }: RawResponse, isPlainServer: boolean): void {
  const type = headers.get('content-type')
  if (type === undefined) {
    const isRejectedByNode = isPlainServer && REJECTED_BY_NODE.has(status)
    assert.ok(status === 100 || status === 204 || isRejectedByNode, `the status ${status} without a body`)
    assert.equal(body, '')
    return
  }
  assert.equal(type, 'application/json')
  const isSuccess = status === 200
  // HEAD is answered the same without the body.
  if (body === '') assert.ok(isSuccess || status >= 400)
  else if (isSuccess) assertPlants(JSON.parse(body))
  else assertError(status, JSON.parse(body))
}

function assertPlants(value: unknown): void {
  const isList = Array.isArray(value)
  for (const plant of isList ? (value as unknown[]) : [value]) {
    const { id, name, tag, ...rest } = plant as Record<string, unknown>
    assert.ok(typeof name === 'string' && (tag === undefined || typeof tag === 'string'))
    assert.ok(id === undefined || (isList && typeof id === 'number'))
    assert.deepEqual(rest, {})
  }
}

function assertError(status: number, value: unknown): void {
  const { error, message, ...rest } = value as Record<string, unknown>
  assert.ok(typeof error === 'number' && CLIENT_ERRORS.has(error), `the error ${String(error)}`)
  assert.equal(status, Math.trunc(error / 100))
  assert.ok(typeof message === 'string' && message !== '')
  assert.deepEqual(rest, {})
}
