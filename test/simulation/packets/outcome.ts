import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import { ERRORS } from '../../../src/http/errors.ts'
import { programDescription } from '../../../src/standalone/paths/program-description.ts'
import { assertContractResponse } from '../../support/wire/assert-response.ts'
import type { RawResponse } from '../../support/wire/parse-responses.ts'

/** What came of the bytes that a client sent. */
export interface ConversationOutcome {
  /** Whether the server is one of `node:http` as it is, and not that of the program. */
  readonly isPlain: boolean
  readonly responses: readonly RawResponse[]
  /** What the server sent that is no whole answer. */
  readonly remainder: string
  /** Whether the server closed the connection before the client ended its side. */
  readonly isClosed: boolean
  /** The creates and deletes that were carried out, in order, each with what the store said. */
  readonly writes: readonly string[]
}

/** What the program answers beside the service. */
const PROGRAM_BODIES: ReadonlySet<string> = new Set([
  '{"status":"live"}',
  '{"status":"ready"}',
  JSON.stringify(programDescription),
])

const MALFORMED = JSON.stringify({ error: ERRORS.malformedRequest.error, message: ERRORS.malformedRequest.message })

/**
 * Checks what can be said of one outcome alone: the responses are the contract's, and each write was answered, in order.
 * @throws AssertionError if it is not so
 */
export function assertValidOutcome(outcome: ConversationOutcome): void {
  const { isPlain, responses, remainder, writes } = outcome
  for (const answer of responses) if (!PROGRAM_BODIES.has(answer.body)) assertContractResponse(answer, isPlain)
  const reportedWrites = responses.map(getReportedWrite).filter((write) => write !== undefined)
  const results = writes.map((write) => write.replace(/ .*:/, ':'))
  if (isPlain && isAbortedByNode(outcome)) {
    assert.match(remainder.slice(0, 9), /^(?:HTTP\/1\.1 |)$/)
    // The last may have been on its way.
    if (results.length === reportedWrites.length + 1) results.pop()
  } else {
    assert.equal(remainder, '', 'an answer is not whole')
  }
  assert.deepEqual(results, reportedWrites, 'what was written is not what was answered')
}

/** What an answer says of a write. */
function getReportedWrite({ status, headers, body }: RawResponse): string | undefined {
  if (status === 200 && body.startsWith('{"name":')) return 'create: true'
  if (status === 409) return 'create: false'
  if (status === 204 && !headers.has('allow')) return 'delete: true'
  return status === 404 && body.startsWith('{"error":40401,') ? 'delete: false' : undefined
}

/**
 * Whether `node:http` itself cut the connection. It does at the first byte that is no request, and before it has sent
 * what it was asked for earlier, unless the host has a listener for that as the program has.
 */
function isAbortedByNode({ responses, isClosed }: ConversationOutcome): boolean {
  const last = responses.at(-1)
  return last === undefined
    ? isClosed
    : isWrittenByNode(last) || (isClosed && last.headers.get('connection') !== 'close')
}

/** Whether it is the answer that `node:http` writes before it cuts a connection. */
function isWrittenByNode({ status, headers }: RawResponse): boolean {
  return status >= 400 && !headers.has('date')
}

/** Says in what two outcomes of the same bytes differ, if they do. */
export function findDifference(unsplit: ConversationOutcome, split: ConversationOutcome): string | undefined {
  const [a, b] = [toComparable(unsplit), toComparable(split)]
  let i = 0
  while (i < Math.min(a.length, b.length) && isDeepStrictEqual(a[i], b[i])) i++
  const isEarly = isRejectedEarly(a, b, i)
  // When a refusal closes one of the connections, or Node cuts it or drops what it read, it depends on the packets how
  // far it has come.
  const isShort = isEarly || (unsplit.isPlain && (isAbortedByNode(unsplit) || isAbortedByNode(split)))
  const isSame = i === (isShort ? Math.min(a.length, b.length) : Math.max(a.length, b.length))
  if (!isSame && !isEarly && !isRejectedEitherWay(a, b, i)) return `the responses differ from number ${i} on`
  const length = isShort ? Math.min(unsplit.writes.length, split.writes.length) : Infinity
  const [writesA, writesB] = [unsplit.writes.slice(0, length), split.writes.slice(0, length)]
  return isDeepStrictEqual(writesA, writesB) ? undefined : 'what was carried out differs'
}

interface ComparableResponse {
  readonly status: number
  readonly fields: readonly (readonly [string, string])[]
  readonly body: string
  readonly isClosing: boolean
}

/** What two outcomes must have in common, whenever they came and whatever Node wrote itself before it cut. */
function toComparable({ responses }: ConversationOutcome): readonly ComparableResponse[] {
  return responses
    .filter((answer) => !isWrittenByNode(answer))
    .map(({ status, headers, body }) => {
      const fields = [...headers].filter(([name]) => !['date', 'connection', 'keep-alive'].includes(name))
      return { status, fields, body, isClosing: headers.get('connection') === 'close' }
    })
}

/**
 * Whether the difference is that one request was refused before its body had come, so that the connection was closed.
 * In one packet with its body the same refusal keeps the connection, and what follows is answered.
 */
function isRejectedEarly(a: readonly ComparableResponse[], b: readonly ComparableResponse[], i: number): boolean {
  const [inA, inB] = [a[i], b[i]]
  if (inA === undefined || inB === undefined || inA.status < 400 || inA.isClosing === inB.isClosing) return false
  const isLast = (inA.isClosing ? a : b).length === i + 1
  return isLast && isDeepStrictEqual({ ...inA, isClosing: true }, { ...inB, isClosing: true })
}

/**
 * Whether the difference is in why a request was refused whose body is too large, and malformed further on. What comes
 * in one packet is parsed before the first is seen. Either refusal is the last.
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
