import assert from 'node:assert/strict'
import { StoreUnavailableError } from '../../../src/plants/store.ts'

/** An error as a server of Postgres sends it. */
export function serverError(code: string): Error {
  return Object.assign(new Error(`SQLSTATE ${code}`), { code })
}

/** What a call is rejected with; undefined if it is not. */
export async function failureOf(call: Promise<unknown>): Promise<unknown> {
  const [outcome] = await Promise.allSettled([call])
  return outcome.status === 'rejected' ? outcome.reason : undefined
}

/** How a store is unavailable for a call. */
export async function failure(call: Promise<unknown>): Promise<StoreUnavailableError> {
  const error = await failureOf(call)
  assert.ok(error instanceof StoreUnavailableError, String(error))
  return error
}
