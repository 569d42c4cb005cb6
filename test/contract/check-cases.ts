import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { post, type TestResponse, type TestRequest } from '../support/service.ts'
import { CONTRACT_CASES, type ContractCase } from './contract-cases.ts'

/** The parts of a response that a case compares. */
export type ComparedResponse = Pick<TestResponse, 'status' | 'headers' | 'body'>

/** A host of the service, and how the host changes requests and responses. */
export interface Host {
  /** Shown in the name of each test. */
  readonly name: string
  readonly client: { send(request: TestRequest): Promise<ComparedResponse> }
  /** The path before `/plants`. */
  readonly prefix?: string
  /** Whether the host gets requests that only HTTP/1 can express. */
  readonly isHttp1: boolean
  /** Whether all cases are run. By default, only those that a framework can break are. */
  readonly runsAllCases?: boolean
  /** Header fields that are added to each request. */
  readonly fields?: readonly string[]
  /** Whether the host passes the request of a case to the service. By default, the host passes every request. */
  readonly passesOn?: (row: ContractCase) => boolean
  /** The expected response. By default, the response of the case plus its Content-Length. */
  readonly expected?: (row: ContractCase) => ComparedResponse
  /** Removes what the host has added to a response. */
  readonly normalize?: (response: ComparedResponse) => ComparedResponse
}

/** The cases that a framework can break: it parses paths and bodies, and adds its own OPTIONS, HEAD, 404 and 405. */
const FRAMEWORK_CASES: ReadonlySet<string> = new Set([
  'creates a plant and returns it without its id',
  'preserves text from every Unicode plane',
  'responds to HEAD /plants like to GET, but without a body',
  'deletes a plant and responds without a body',
  'decodes a percent-encoded path once',
  'rejects a malformed percent-escape with 40000',
  'responds to OPTIONS /plants without a token',
  'rejects PUT /plants with 40500',
  'adds include=id to the Link header',
])

/** Runs contract cases as subtests that compare the whole response: all of them, or those that frameworks can break. */
export async function testCases(t: TestContext, host: Host): Promise<void> {
  const {
    client,
    prefix = '',
    isHttp1,
    fields = [],
    runsAllCases = false,
    passesOn,
    expected = addContentLength,
  } = host
  const send = (request: TestRequest): Promise<ComparedResponse> =>
    client.send({ ...request, path: prefix + request.path, fields: [...request.fields, ...fields] })
  for (const [group, rows] of Object.entries(CONTRACT_CASES)) {
    for (const [i, row] of rows.entries()) {
      // Some Node versions reject too many fields themselves, and each framework uses its own message.
      if (!runsAllCases && !FRAMEWORK_CASES.has(row.name)) continue
      if ((row.isHttp1Only && !isHttp1) || row.status === 431 || passesOn?.(row) === false) continue
      await t.test(`${row.name} (${host.name})`, async () => {
        const token = getCaseToken(group, i)
        for (const body of row.existingPlants) assert.equal((await send(post(token, body))).status, 200)
        const received = await send(row.request(token))
        const { status, headers, body } = host.normalize?.(received) ?? received
        assert.deepEqual({ status, headers, body }, expected(row))
      })
    }
  }
}

/** Returns the token of a case, which is also the name of its owner. */
export function getCaseToken(group: string, i: number): string {
  return `${group}-${i}`.replaceAll(' ', '-')
}

export function addContentLength({ status, headers, body }: ContractCase): ComparedResponse {
  const length = status === 204 ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  return { status, headers: { ...length, ...headers }, body }
}
