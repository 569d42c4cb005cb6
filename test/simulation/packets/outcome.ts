import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { ERRORS } from '../../../src/http/errors.ts'
import { programDescription } from '../../../src/standalone/paths/program-description.ts'
import { assertContractResponse } from '../../support/wire/assert-response.ts'
import type { RawResponse } from '../../support/wire/parse-responses.ts'

/** The result of sending a sequence of bytes. */
export interface ConversationOutcome {
  /** Whether the server is a plain `node:http` server instead of `createHttpServer()`. */
  readonly isPlain: boolean
  readonly responses: readonly RawResponse[]
  /** Data from the server after the last complete response. */
  readonly remainder: string
  /** Whether the server closed the connection before the client ended its side. */
  readonly isClosed: boolean
  /** The executed creates and deletes in order, each with the result of the store. */
  readonly writes: readonly string[]
}

/** Bodies of the standalone server's own endpoints. */
const PROGRAM_BODIES: ReadonlySet<string> = new Set([
  '{"status":"live"}',
  '{"status":"ready"}',
  JSON.stringify(programDescription),
])

const MALFORMED = JSON.stringify({ error: ERRORS.malformedRequest.error, message: ERRORS.malformedRequest.message })

/**
 * Checks a single outcome: the contract allows every response, and the responses report exactly the executed writes, in
 * order.
 * @throws AssertionError if the outcome violates these rules
 */
export function assertValidOutcome(outcome: ConversationOutcome): void {
  const { isPlain, responses, remainder, writes } = outcome
  for (const response of responses) if (!PROGRAM_BODIES.has(response.body)) assertContractResponse(response, isPlain)
  const reportedWrites = responses.map(getReportedWrite).filter((write) => write !== undefined)
  const results = writes.map((write) => write.replace(/ .*:/, ':'))
  if (isPlain && isAbortedByNode(outcome)) {
    assert.match(remainder.slice(0, 9), /^(?:HTTP\/1\.1 |)$/)
    // The response to the last write may have been lost.
    if (results.length === reportedWrites.length + 1) results.pop()
  } else {
    assert.equal(remainder, '', 'the last response is incomplete')
  }
  assert.deepEqual(results, reportedWrites, 'the responses do not match the executed writes')
}

/** Returns the write that a response reports, if any. */
function getReportedWrite({ status, headers, body }: RawResponse): string | undefined {
  if (status === 200 && body.startsWith('{"name":')) return 'create: true'
  if (status === 409) return 'create: false'
  if (status === 204 && !headers.has('allow')) return 'delete: true'
  return status === 404 && body.startsWith('{"error":40401,') ? 'delete: false' : undefined
}

/**
 * Whether `node:http` itself closed the connection. Without a `clientError` listener, it does so at the first malformed
 * byte, even while earlier responses are pending.
 */
function isAbortedByNode({ responses, isClosed }: ConversationOutcome): boolean {
  const last = responses.at(-1)
  return last === undefined
    ? isClosed
    : isWrittenByNode(last) || (isClosed && last.headers.get('connection') !== 'close')
}

/** Whether this is the response that `node:http` writes before it closes a connection. */
function isWrittenByNode({ status, headers }: RawResponse): boolean {
  return status >= 400 && !headers.has('date')
}

/** Describes the difference between two outcomes of the same bytes, if there is one. */
export function findDifference(unsplit: ConversationOutcome, split: ConversationOutcome): string | undefined {
  const [a, b] = [toComparable(unsplit), toComparable(split)]
  let i = 0
  while (i < Math.min(a.length, b.length) && isDeepStrictEqual(a[i], b[i])) i++
  const isEarly = isRejectedEarly(a, b, i)
  // If a connection closes after a rejection, or if Node closes it or drops data, the number of responses before that
  // depends on the packets.
  const isShort = isEarly || (unsplit.isPlain && (isAbortedByNode(unsplit) || isAbortedByNode(split)))
  const isSame = i === (isShort ? Math.min(a.length, b.length) : Math.max(a.length, b.length))
  if (!isSame && !isEarly && !isRejectedEitherWay(a, b, i)) return `the responses differ from index ${i}`
  const length = isShort ? Math.min(unsplit.writes.length, split.writes.length) : Infinity
  const [writesA, writesB] = [unsplit.writes.slice(0, length), split.writes.slice(0, length)]
  return isDeepStrictEqual(writesA, writesB) ? undefined : 'the executed writes differ'
}

interface ComparableResponse {
  readonly status: number
  readonly fields: readonly (readonly [string, string])[]
  readonly body: string
  readonly isClosing: boolean
}

/** Returns what two outcomes must have in common: everything but times, keep-alive and Node's own last response. */
function toComparable({ responses }: ConversationOutcome): readonly ComparableResponse[] {
  return responses
    .filter((response) => !isWrittenByNode(response))
    .map(({ status, headers, body }) => {
      const fields = [...headers].filter(([name]) => !['date', 'connection', 'keep-alive'].includes(name))
      return { status, fields, body, isClosing: headers.get('connection') === 'close' }
    })
}

/**
 * Whether the outcomes differ only because a request was rejected before its body arrived, which closes the connection.
 * If the body arrives in the same packet, the same rejection keeps the connection open for the following requests.
 */
function isRejectedEarly(a: readonly ComparableResponse[], b: readonly ComparableResponse[], i: number): boolean {
  const [inA, inB] = [a[i], b[i]]
  if (inA === undefined || inB === undefined || inA.status < 400 || inA.isClosing === inB.isClosing) return false
  const isLast = (inA.isClosing ? a : b).length === i + 1
  return isLast && isDeepStrictEqual({ ...inA, isClosing: true }, { ...inB, isClosing: true })
}

/**
 * Whether the outcomes differ only in the reason for rejecting a body that is both too large and malformed. Node parses
 * a whole packet before the service sees its first byte, so either reason may be reported. Both close the connection.
 */
function isRejectedEitherWay(a: readonly ComparableResponse[], b: readonly ComparableResponse[], i: number): boolean {
  const lastResponses = [...a.slice(i), ...b.slice(i)]
  return (
    a.length === b.length &&
    lastResponses.length === 2 &&
    lastResponses.every(({ isClosing }) => isClosing) &&
    lastResponses.some(({ status }) => status === 413) &&
    lastResponses.some(({ body }) => body === MALFORMED)
  )
}
