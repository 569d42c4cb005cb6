import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { suite, test } from 'node:test'
import { buffer } from 'node:stream/consumers'
import type { PlantStoreOptions } from '../../src/index.ts'
import { serveAndConnect } from '../support/client.ts'
import { importPeer, skipWithoutPeers } from '../support/extra-packages.ts'
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

/** The kinds of parsers that frameworks provide. The second one keeps the original bytes, as Cloud Functions does. */
type Kind = 'object' | 'objectAndRawBody' | 'buffer' | 'string' | 'nothing'
type Parsers = Readonly<Record<Kind, Parser>>

const parseJson = (bytes: Buffer): unknown => JSON.parse(String(bytes) || '{}')

const HANDWRITTEN: Parsers = {
  object: parseTo(parseJson),
  objectAndRawBody: parseTo(parseJson, (bytes) => bytes),
  buffer: parseTo((bytes) => bytes),
  string: parseTo(String),
  nothing: callThenNext(() => undefined),
}

async function loadExpressParsers(): Promise<Parsers> {
  type Express = Record<'json' | 'raw' | 'text' | 'urlencoded', (options?: object) => Parser>
  const { json, raw, text, urlencoded } = await importPeer<Express>('express')
  const keepRawBody = (request: object, _: unknown, rawBody: Buffer) => Object.assign(request, { rawBody })
  const options = { type: 'application/json' }
  const parsers = { object: json(), buffer: raw(options), string: text(options), nothing: urlencoded() }
  return { ...parsers, objectAndRawBody: json({ verify: keepRawBody }) }
}

/** Middleware that keeps the text of a body in `rawBody`. */
const keepRawText: Parser = (request, response, next) => {
  parseTo(() => ({}), String)(request.setEncoding('utf8'), response, next)
}

/** Sets `req.body` to a plant whose id JSON.parse can't return. */
const setId = (id: bigint): Parser => parseTo(() => ({ id, name: 'Fern' }))

const noop = (): undefined => undefined

const addDataListener = callThenNext((request) => request.on('data', () => undefined))

/** Waits until the body is being read. */
const authenticate: PlantStoreOptions['authenticate'] = async (token, request) => {
  await waitUntil(() => request.readableDidRead)
  return token
}

type Row = readonly [name: string, Kind | Parser, body: string, typeof CREATED, options?: Partial<PlantStoreOptions>]

const ROWS: readonly Row[] = [
  ['a Buffer', 'buffer', PLANT, CREATED],
  ['a Buffer with an id beyond 2^53', 'buffer', LARGE_ID_PLANT, CREATED],
  ["a Buffer that isn't JSON", 'buffer', '{"id":7]', createRejection(40001, INVALID_JSON)],
  ['a Buffer of the maximum size', 'buffer', PLANT.padEnd(100), CREATED],
  ['a Buffer over the size limit', 'buffer', PLANT.padEnd(101), createRejection(41300, TOO_LARGE)],
  ['a Uint8Array', parseTo((bytes) => new Uint8Array(bytes)), LARGE_ID_PLANT, CREATED],
  ['a string', 'string', PLANT, CREATED],
  ['a string with an id beyond 2^53', 'string', LARGE_ID_PLANT, CREATED],
  ['an empty string', parseTo(() => ''), PLANT, createRejection(40001, EMPTY_BODY)],
  ['a string over the size limit', 'string', PLANT.replace('Fern', 'é'.repeat(50)), createRejection(41300, TOO_LARGE)],
  ['an object', 'object', PLANT, CREATED],
  ["an object that isn't a plant", 'object', '{"id":7}', createRejection(40002, MISSING_NAME)],
  ['an object whose id is beyond 2^53', 'object', LARGE_ID_PLANT, TOO_LATE],
  ["an object whose id isn't an integer", 'object', '{"id":7.5,"name":"Fern"}', TOO_LATE],
  ['an object without an id', 'object', '{"name":"Fern"}', TOO_LATE],
  ['an object whose tag is null', 'object', '{"id":7,"name":"Fern","tag":null}', createRejection(40002, NULL_TAG)],
  ['an object whose id is a bigint', setId(7n), PLANT, CREATED],
  ['an object whose id is a bigint beyond 2^53', setId(9007199254740993n), LARGE_ID_PLANT, CREATED],
  ['an object whose id is a bigint beyond int64', setId(2n ** 63n), PLANT, createRejection(40002, INVALID_ID)],
  ['an object with an id beyond 2^53 and its original bytes', 'objectAndRawBody', LARGE_ID_PLANT, CREATED],
  ['an object and too many original bytes', 'objectAndRawBody', PLANT.padEnd(101), createRejection(41300, TOO_LARGE)],
  ['an object with an id beyond 2^53 and its original text', keepRawText, LARGE_ID_PLANT, CREATED],
  ['bytes in rawBody without req.body', parseTo(noop, (bytes) => bytes), LARGE_ID_PLANT, CREATED],
  ['null', parseTo(() => null), PLANT, TOO_LATE],
  ['a missing req.body', parseTo(noop), PLANT, TOO_LATE],
  ['a body that the parser ignored', 'nothing', LARGE_ID_PLANT, CREATED],
  ['a body that the host paused', callThenNext((request) => request.pause()), LARGE_ID_PLANT, CREATED],
  ['a body whose encoding the host has set', callThenNext((request) => request.setEncoding('utf8')), PLANT, TOO_LATE],
  ['a body that the host also reads', addDataListener, LARGE_ID_PLANT, CREATED],
  ['a body that the host reads while authenticate is pending', addDataListener, PLANT, TOO_LATE, { authenticate }],
]

const EXPRESS_ROWS = ROWS.filter(([, parser]) => typeof parser === 'string')
const SUITES = (['http', 'h2c'] as const).flatMap((protocol) => [
  [protocol, protocol, ROWS, () => HANDWRITTEN, false] as const,
  [`Express, ${protocol}`, protocol, EXPRESS_ROWS, loadExpressParsers, skipWithoutPeers] as const,
])

for (const [host, protocol, rows, loadParsers, skip] of SUITES) {
  suite(`after a body parser (${host})`, { skip }, () => {
    for (const [name, parser, body, expected, options] of rows) {
      const { error } = JSON.parse(expected.body) as { error?: number }
      const behavior = error === undefined ? `accepts ${name}` : `rejects ${name} with ${error}`
      test(`${behavior} (${host})`, { timeout: 60_000 }, async (t) => {
        const reportedErrors: string[] = []
        const onError = (error: unknown): unknown => reportedErrors.push(String(error))
        const plantStore = createService({ maxBodyBytes: 100, onError, ...options })
        const parse = typeof parser === 'string' ? (await loadParsers())[parser] : parser
        const client = await serveAndConnect(t, protocol, (request, response) => {
          parse(request, response, () => plantStore(request, response))
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
    const parse = HANDWRITTEN[request.headers['x-parser'] === 'object' ? 'object' : 'objectAndRawBody']
    parse(request, response, () => plantStore(request, response))
  })

  await client.send(post('ada', PLANT))
  assert.deepEqual(warnings, [])
  for (let i = 0; i < 2; i++) await client.send(post('ada', PLANT, ['x-parser', 'object']))
  assert.deepEqual(warnings, [
    'PlantStoreWarning: A body parser ran before plant-store. Parsers round ids beyond 2^53: ' +
      'mount plant-store before the body parser, or keep the unparsed body in request.rawBody',
  ])
})
