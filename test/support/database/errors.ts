import assert from 'node:assert/strict'
import { StoreUnavailableError } from '../../../src/plants/store.ts'

/** An error as a server of Postgres sends it. */
export function createServerError(code: string): Error {
  return Object.assign(new Error(`SQLSTATE ${code}`), { code })
}

/** What a call is rejected with; undefined if it is not. */
export async function captureError(call: Promise<unknown>): Promise<unknown> {
  const [outcome] = await Promise.allSettled([call])
  return outcome.status === 'rejected' ? outcome.reason : undefined
}

/** How a store is unavailable for a call. */
export async function captureUnavailable(call: Promise<unknown>): Promise<StoreUnavailableError> {
  const error = await captureError(call)
  assert.ok(error instanceof StoreUnavailableError, String(error))
  return error
}
