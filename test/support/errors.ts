import assert from 'node:assert/strict'
import { StoreUnavailableError } from '../../src/plants/store.ts'

/** Creates an error as a Postgres server sends it. @param code the SQLSTATE */
export function createServerError(code: string): Error {
  return Object.assign(new Error(`SQLSTATE ${code}`), { code })
}

/** Returns the error with which a call rejects; undefined if the call resolves. */
export async function captureError(call: Promise<unknown>): Promise<unknown> {
  const [outcome] = await Promise.allSettled([call])
  return outcome.status === 'rejected' ? outcome.reason : undefined
}

/** Checks that a call rejects with a StoreUnavailableError, and returns the error. */
export async function captureUnavailable(call: Promise<unknown>): Promise<StoreUnavailableError> {
  const error = await captureError(call)
  assert.ok(error instanceof StoreUnavailableError, String(error))
  return error
}
