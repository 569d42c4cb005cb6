import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { suite, test } from 'node:test'
import { buffer } from 'node:stream/consumers'
import express from 'express'
import type { PlantStoreOptions } from '../../src/index.ts'
import { serveAndConnect } from '../support/client.ts'
import { waitUntil } from '../support/wait-until.ts'
import { createService, del, post } from '../support/service.ts'

/** Middleware that runs before the service. */
type Parser = (request: IncomingMessage, response: ServerResponse, next: () => void) => void

const PLANT = '{"id":7,"name":"Fern"}'
/** Has an id that a double can't represent. */
const LARGE_ID_PLANT = '{"id":9007199254740993,"name":"Fern"}'

const EMPTY_BODY = 'The body is empty: expected a value at byte 0.'
const INVALID_JSON = 'The body is not JSON: expected "," or "}" at byte 7.'
const MISSING_NAME = 'The plant is invalid: name is required.'
const NULL_TAG = 'The plant is invalid: tag must be a string or absent, not null.'
const INVALID_ID = 'The plant is invalid: id must be from -9223372036854775808 to 9223372036854775807.'
const TOO_LARGE = 'The body is larger than 100 bytes.'

/** The expected response, and the errors that `onError` gets. */
const createRejection = (error: number, message: string, ...reportedErrors: string[]) => ({
  status: Math.trunc(error / 100),
  body: JSON.stringify({ error, message }),
  reportedErrors,
})
const createFailure = (reportedError: string) => createRejection(50000, 'An internal error occurred.', reportedError)
const TOO_LATE = createFailure(
  'TypeError: The body was already read: mount plant-store before the body parser, or keep the unparsed body in request.rawBody',
)
const CREATED = { status: 200, body: '{"name":"Fern"}', reportedErrors: [] as string[] }

const parseJson = express.json({ limit: '10mb' }) as Parser
const parseBuffer = express.raw({ type: 'application/json' }) as Parser
const parseText = express.text({ type: 'application/json' }) as Parser
const parseForm = express.urlencoded() as Parser

/** Creates a parser that reads the body and sets `req.body` and `req.rawBody`. */
function parseTo(body: (bytes: Buffer) => unknown, rawBody: typeof body = () => undefined): Parser {
  return (request, _, next) => {
    void buffer(request).then((bytes) => {
      Object.assign(request, { body: body(bytes), rawBody: rawBody(bytes) })
      next()
    })
  }
}

/** Creates a middleware that changes the request and calls `next` immediately. */
function callThenNext(callback: (request: IncomingMessage) => unknown): Parser {
  return (request, _, next) => {
    callback(request)
    next()
  }
}

/** A parser that keeps the original bytes in `rawBody`, as Cloud Functions does. */
const parseAndKeepRawBody = express.json({
  verify: (request, _, rawBody) => Object.assign(request, { rawBody }),
}) as Parser

/** Middleware that keeps the text of a body in `rawBody`. */
const keepRawText: Parser = (request, response, next) => {
  parseTo(() => ({}), String)(request.setEncoding('utf8'), response, next)
}

const noop = (): undefined => undefined

const addDataListener = callThenNext((request) => request.on('data', () => undefined))

const authenticateAfterBody: PlantStoreOptions['authenticate'] = async (token, request) => {
  await waitUntil(() => request.readableDidRead)
  return token
}

type Row = readonly [name: string, parser: Parser, body: string, typeof CREATED, options?: Partial<PlantStoreOptions>]

const ROWS: readonly Row[] = [
  ['a Buffer', parseBuffer, PLANT, CREATED],
  ['a Buffer with an id beyond 2^53', parseBuffer, LARGE_ID_PLANT, CREATED],
  ["a Buffer that isn't JSON", parseBuffer, '{"id":7]', createRejection(40001, INVALID_JSON)],
  ['a Buffer of the maximum size', parseBuffer, PLANT.padEnd(100), CREATED],
  ['a Buffer over the size limit', parseBuffer, PLANT.padEnd(101), createRejection(41300, TOO_LARGE)],
  ['a Uint8Array', parseTo((bytes) => new Uint8Array(bytes)), LARGE_ID_PLANT, CREATED],
  ['a string', parseText, PLANT, CREATED],
  ['a string with an id beyond 2^53', parseText, LARGE_ID_PLANT, CREATED],
  ['an empty string', parseTo(() => ''), PLANT, createRejection(40001, EMPTY_BODY)],
  ['a string over the size limit', parseText, PLANT.replace('Fern', 'é'.repeat(50)), createRejection(41300, TOO_LARGE)],
  ['an object', parseJson, PLANT, CREATED],
  ["an object that isn't a plant", parseJson, '{"id":7}', createRejection(40002, MISSING_NAME)],
  ['an object whose id is beyond 2^53', parseJson, LARGE_ID_PLANT, TOO_LATE],
  ["an object whose id isn't an integer", parseJson, '{"id":7.5,"name":"Fern"}', TOO_LATE],
  ['an object without an id', parseJson, '{"name":"Fern"}', TOO_LATE],
  [
    'an object whose tag is null',
    parseTo(() => ({ id: 7, name: 'Fern', tag: null })),
    PLANT,
    createRejection(40002, NULL_TAG),
  ],
  ['an object whose id is a bigint', parseTo(() => ({ id: 7n, name: 'Fern' })), PLANT, CREATED],
  [
    'an object whose id is a bigint beyond 2^53',
    parseTo(() => ({ id: 9007199254740993n, name: 'Fern' })),
    LARGE_ID_PLANT,
    CREATED,
  ],
  [
    'an object whose id is a bigint beyond int64',
    parseTo(() => ({ id: 2n ** 63n, name: 'Fern' })),
    PLANT,
    createRejection(40002, INVALID_ID),
  ],
  ['an object with an id beyond 2^53 and its original bytes', parseAndKeepRawBody, LARGE_ID_PLANT, CREATED],
  [
    'an object whose original bytes exceed the size limit',
    parseAndKeepRawBody,
    PLANT + ' '.repeat(99),
    createRejection(41300, TOO_LARGE),
  ],
  ['an object with an id beyond 2^53 and its original text', keepRawText, LARGE_ID_PLANT, CREATED],
  ['bytes in rawBody without req.body', parseTo(noop, (bytes) => bytes), LARGE_ID_PLANT, CREATED],
  ['null', parseTo(() => null), PLANT, TOO_LATE],
  ['a missing req.body', parseTo(noop), PLANT, TOO_LATE],
  ['a body that the parser ignored', parseForm, LARGE_ID_PLANT, CREATED],
  ['a body that the host paused', callThenNext((request) => request.pause()), LARGE_ID_PLANT, CREATED],
  ['a body whose encoding the host has set', callThenNext((request) => request.setEncoding('utf8')), PLANT, TOO_LATE],
  ['a body that the host also reads', addDataListener, LARGE_ID_PLANT, CREATED],
  [
    'a body that the host reads during an asynchronous authenticate',
    addDataListener,
    PLANT,
    TOO_LATE,
    { authenticate: authenticateAfterBody },
  ],
]

for (const protocol of ['http', 'h2c'] as const) {
  suite(`after a body parser, on ${protocol}`, () => {
    for (const [name, parser, body, expected, options] of ROWS) {
      const { error } = JSON.parse(expected.body) as { error?: number }
      const behavior = error === undefined ? `accepts ${name}` : `rejects ${name} with ${error}`
      test(`${behavior} (${protocol})`, { timeout: 60_000 }, async (t) => {
        const reportedErrors: string[] = []
        const onError = (error: unknown): unknown => reportedErrors.push(String(error))
        const plantStore = createService({ maxBodyBytes: 100, onError, ...options })
        const client = await serveAndConnect(t, protocol, (request, response) => {
          parser(request, response, () => plantStore(request, response))
        })

        const response = await client.send(post('ada', body))

        assert.deepEqual({ status: response.status, body: response.body, reportedErrors }, expected)
        // The plant was stored with the exact id from the body.
        if (expected === CREATED) assert.equal((await client.send(del('ada', /\d+/.exec(body)![0]))).status, 204)
      })
    }
  })
}

test('warns only once about a body parser that converts bodies to objects', async (t) => {
  const warnings: string[] = []
  const keep = (warning: Error): unknown => warnings.push(String(warning))
  process.on('warning', keep)
  t.after(() => process.off('warning', keep))
  const plantStore = createService()
  const client = await serveAndConnect(t, 'http', (request, response) => {
    const parser = request.headers['x-parser'] === 'object' ? parseJson : parseAndKeepRawBody
    parser(request, response, () => plantStore(request, response))
  })

  await client.send(post('ada', PLANT))
  assert.deepEqual(warnings, [])
  for (let i = 0; i < 2; i++) await client.send(post('ada', PLANT, ['x-parser', 'object']))
  assert.deepEqual(warnings, [
    'PlantStoreWarning: A body parser ran before plant-store. Parsers round ids beyond 2^53: ' +
      'mount plant-store before the body parser, or keep the unparsed body in request.rawBody',
  ])
})
