import assert from 'node:assert/strict'
import { StoreUnavailableError } from '../../../src/plants/store.ts'

/** Creates an error like those that a Postgres server sends. @param code the SQLSTATE */
export function createServerError(code: string): Error {
  return Object.assign(new Error(`SQLSTATE ${code}`), { code })
}

/** Returns the error with which a call is rejected; undefined if it resolves. */
export async function captureError(call: Promise<unknown>): Promise<unknown> {
  const [outcome] = await Promise.allSettled([call])
  return outcome.status === 'rejected' ? outcome.reason : undefined
}

/** Checks that a call is rejected with a StoreUnavailableError, and returns the error. */
export async function captureUnavailable(call: Promise<unknown>): Promise<StoreUnavailableError> {
  const error = await captureError(call)
  assert.ok(error instanceof StoreUnavailableError, String(error))
  return error
}
