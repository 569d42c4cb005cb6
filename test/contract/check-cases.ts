import assert from 'node:assert/strict'
import { post, type TestResponse, type TestRequest } from '../support/wire/service.ts'
import type { ContractCase } from './contract-cases.ts'

/** What a test looks at of an answer. */
export type ComparedResponse = Pick<TestResponse, 'status' | 'headers' | 'body'>

/** Where a service is mounted, and what is left of a response when what others added is taken away. */
export interface MountPoint {
  /** What comes before `/plants`. */
  readonly prefix: string
  /** Whether a request can be sent there that only HTTP/1 can hold. */
  readonly isHttp1: boolean
  /** Fields that are sent with each request. */
  readonly fields?: readonly string[]
  /** What a row is answered there; by default, what it says and the length of that. */
  readonly expected?: (row: ContractCase) => ComparedResponse
  /** What the service itself answered. */
  readonly normalize?: (reply: ComparedResponse) => ComparedResponse
}

/** Sends the requests of a group of the contract's cases, and asserts the whole of each response. */
export async function checkCases(
  client: { send(request: TestRequest): Promise<ComparedResponse> },
  group: string,
  rows: readonly ContractCase[],
  { prefix, isHttp1, fields = [], expected = addContentLength, normalize: received = (reply) => reply }: MountPoint,
): Promise<void> {
  const send = (request: TestRequest): Promise<ComparedResponse> =>
    client.send({ ...request, path: prefix + request.path, fields: [...request.fields, ...fields] })
  for (const [i, row] of rows.entries()) {
    // Some versions of Node refuse too many fields themselves, and each host has words for that.
    if ((row.isHttp1Only && !isHttp1) || row.status === 431) continue
    const token = getCaseToken(group, i)
    for (const body of row.existingPlants) assert.equal((await send(post(token, body))).status, 200)

    const { status, headers, body } = received(await send(row.request(token)))

    const { name } = row
    assert.deepEqual({ name, status, headers, body }, { name, ...expected(row) })
  }
}

/** The token of a case, and the name of its owner. */
export function getCaseToken(group: string, i: number): string {
  return `${group}-${i}`.replaceAll(' ', '-')
}

export function addContentLength({ status, headers, body }: ContractCase): ComparedResponse {
  const length = status === 204 ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  return { status, headers: { ...length, ...headers }, body }
}
