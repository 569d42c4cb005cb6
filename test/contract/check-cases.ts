import assert from 'node:assert/strict'
import { post, type Answer, type Request } from '../support/wire/service.ts'
import type { ContractCase } from './cases.ts'

/** What a test looks at of an answer. */
export type Reply = Pick<Answer, 'status' | 'headers' | 'body'>

/** Where a service is mounted, and what is left of a response when what others added is taken away. */
export interface Place {
  /** What comes before `/plants`. */
  readonly prefix: string
  /** Whether a request can be sent there that only HTTP/1 can hold. */
  readonly isHttp1: boolean
  /** Fields that are sent with each request. */
  readonly fields?: readonly string[]
  /** What a row is answered there; by default, what it says and the length of that. */
  readonly expected?: (row: ContractCase) => Reply
  /** What the service itself answered. */
  readonly received?: (reply: Reply) => Reply
}

/** Sends the requests of a group of the contract's cases, and asserts the whole of each response. */
export async function checkCases(
  client: { send(request: Request): Promise<Reply> },
  group: string,
  rows: readonly ContractCase[],
  { prefix, isHttp1, fields = [], expected = withLength, received = (reply) => reply }: Place,
): Promise<void> {
  const send = (request: Request): Promise<Reply> =>
    client.send({ ...request, path: prefix + request.path, fields: [...request.fields, ...fields] })
  for (const [i, row] of rows.entries()) {
    // Some versions of Node refuse too many fields themselves, and each host has words for that.
    if ((row.isHttp1Only && !isHttp1) || row.status === 431) continue
    const token = tokenOf(group, i)
    for (const body of row.given) assert.equal((await send(post(token, body))).status, 200)

    const { status, headers, body } = received(await send(row.request(token)))

    const { name } = row
    assert.deepEqual({ name, status, headers, body }, { name, ...expected(row) })
  }
}

/** The token of a case, and the name of its owner. */
export function tokenOf(group: string, i: number): string {
  return `${group}-${i}`.replaceAll(' ', '-')
}

export function withLength({ status, headers, body }: ContractCase): Reply {
  const length = status === 204 ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  return { status, headers: { ...length, ...headers }, body }
}
