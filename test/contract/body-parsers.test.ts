import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { suite, test } from 'node:test'
import { buffer } from 'node:stream/consumers'
import { runInNewContext } from 'node:vm'
import express from 'express'
import type { PlantStoreOptions } from '../../src/index.ts'
import { serveIn } from '../support/wire/client.ts'
import { until } from '../support/until.ts'
import { createService, del, post } from '../support/wire/service.ts'

/** What a host does with a request before the service gets it. */
type Parser = (request: IncomingMessage, response: ServerResponse, next: () => void) => void

const PLANT = '{"id":7,"name":"Fern"}'
/** With an id that a double cannot hold. */
const EXACT = '{"id":9007199254740993,"name":"Fern"}'

const EMPTY = 'The body is empty: expected a value at byte 0.'
const NO_JSON = 'The body is not JSON: expected "," or "}" at byte 7.'
const NO_NAME = 'The plant is invalid: name is required.'
const WRONG_NAME = 'The plant is invalid: name must be a string.'
const NO_ID = 'The plant is invalid: id must be from -9223372036854775808 to 9223372036854775807.'
const TOO_LARGE = 'The body is larger than 100 bytes.'
const TOO_DEEP = 'The body is nested too deeply: expected at most 64 levels at byte 89.'

/** What is answered, and what `onError` is told. */
const refused = (error: number, message: string, ...told: string[]) => ({
  status: Math.trunc(error / 100),
  body: JSON.stringify({ error, message }),
  told,
})
const failed = (told: string) => refused(50000, 'Something went wrong in the service.', told)
const TOO_LATE = failed(
  'TypeError: The body was read before the service saw it: mount plant-store before the body parser',
)
const CREATED = { status: 200, body: '{"name":"Fern"}', told: [] as string[] }

const parseJson = express.json({ limit: '10mb' }) as Parser
const parseBuffer = express.raw({ type: 'application/json' }) as Parser
const parseText = express.text({ type: 'application/json' }) as Parser
const parseForm = express.urlencoded() as Parser

/** A parser that reads the body and makes of it what it likes. */
function parseTo(body: (bytes: Buffer) => unknown, rawBody: typeof body = () => undefined): Parser {
  return (request, _, next) => {
    void buffer(request).then((bytes) => {
      Object.assign(request, { body: body(bytes), rawBody: rawBody(bytes) })
      next()
    })
  }
}

/** Copies bytes to an array that isn't an instance of the `Uint8Array` here, as those of Node aren't in Jest's jsdom. */
const inOtherRealm = (bytes: Uint8Array): unknown => runInNewContext('Uint8Array.from(bytes)', { bytes })

function deepPlant(levels: number): string {
  return `{"id":7,"name":"Fern","x":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
}

const CYCLE: unknown[] = []
CYCLE.push(CYCLE)

/** As JSON text it would have 2^60 values. */
const SHARED = Array.from({ length: 60 }).reduce((item) => [item, item], 1)

const failingPlant = {
  id: 7,
  get name(): string {
    throw new Error('no')
  },
}

function countingPlant(): unknown {
  let next = 7
  return {
    get id() {
      return next++
    },
    name: 'Fern',
  }
}

class OtherPlant {
  readonly id = 7
  readonly name = 'Fern'
  toJSON(): unknown {
    return { id: 8, name: 'Fern' }
  }
}

/** A host that does something to the request and goes on at once. */
function after(touch: (request: IncomingMessage) => unknown): Parser {
  return (request, _, next) => {
    touch(request)
    next()
  }
}

/** A parser that keeps the bytes beside the object, as that of Cloud Functions does. */
const parseAndKeep = express.json({ verify: (request, _, rawBody) => Object.assign(request, { rawBody }) }) as Parser

/** A host that keeps the text of a body itself. */
const keepText: Parser = (request, response, next) => {
  parseTo(() => ({}), String)(request.setEncoding('utf8'), response, next)
}

const nothing = (): undefined => undefined

const readToo = after((request) => request.on('data', () => undefined))

const afterBody: PlantStoreOptions['authenticate'] = async (token, request) => {
  await until(() => request.readableDidRead)
  return token
}

type Row = readonly [name: string, parser: Parser, body: string, typeof CREATED, options?: Partial<PlantStoreOptions>]

const ROWS: readonly Row[] = [
  ['a Buffer', parseBuffer, PLANT, CREATED],
  ['a Buffer, with an id beyond 2^53', parseBuffer, EXACT, CREATED],
  ['a Buffer that is no JSON', parseBuffer, '{"id":7]', refused(40001, NO_JSON)],
  ['a Buffer of as many bytes as it may have', parseBuffer, PLANT.padEnd(100), CREATED],
  ['a Buffer over the limit', parseBuffer, PLANT.padEnd(101), refused(41300, TOO_LARGE)],
  ['a Uint8Array', parseTo((bytes) => new Uint8Array(bytes)), EXACT, CREATED],
  ['a Uint8Array of another realm', parseTo((bytes) => inOtherRealm(bytes)), EXACT, CREATED],
  ['a string', parseText, PLANT, CREATED],
  ['a string, with an id beyond 2^53', parseText, EXACT, CREATED],
  ['an empty string', parseTo(() => ''), PLANT, refused(40001, EMPTY)],
  ['a string over the limit', parseText, PLANT.replace('Fern', 'é'.repeat(50)), refused(41300, TOO_LARGE)],
  ['an object', parseJson, PLANT, CREATED],
  ['an object that is no plant', parseJson, '{"id":7}', refused(40002, NO_NAME)],
  ['an object whose id is beyond 2^53', parseJson, EXACT, TOO_LATE],
  ['an object whose id is no whole number', parseJson, '{"id":7.5,"name":"Fern"}', TOO_LATE],
  ['an object without an id', parseJson, '{"name":"Fern"}', TOO_LATE],
  ['an object of 20,000 levels', parseJson, deepPlant(20_000), refused(40001, TOO_DEEP)],
  ['an object of 2^60 values', parseTo(() => ({ id: 7, name: 'Fern', x: SHARED })), PLANT, refused(41300, TOO_LARGE)],
  ['a cycle', parseTo(() => ({ id: 7, name: 'Fern', x: CYCLE })), PLANT, refused(40001, TOO_DEEP)],
  ['a getter that throws', parseTo(() => failingPlant), PLANT, failed('Error: no')],
  ['a getter that says another id later', parseTo(countingPlant), PLANT, CREATED],
  ['a toJSON that says another id', parseTo(() => new OtherPlant()), PLANT, CREATED],
  ['a Date in place of a name', parseTo(() => ({ id: 7, name: new Date() })), PLANT, refused(40002, WRONG_NAME)],
  ['a BigInt in place of a name', parseTo(() => ({ id: 7, name: 7n })), PLANT, refused(40002, WRONG_NAME)],
  ['an id that is a bigint', parseTo(() => ({ id: 7n, name: 'Fern' })), PLANT, CREATED],
  ['a bigint beyond 2^53', parseTo(() => ({ id: 9007199254740993n, name: 'Fern' })), EXACT, CREATED],
  ['a bigint beyond int64', parseTo(() => ({ id: 2n ** 63n, name: 'Fern' })), PLANT, refused(40002, NO_ID)],
  ['an unknown member beyond the range of a double', parseJson, '{"id":7,"name":"Fern","x":1e400}', CREATED],
  ['a name beyond the range of a double', parseJson, '{"id":7,"name":1e400}', refused(40002, WRONG_NAME)],
  ['a tag that is undefined', parseTo(() => ({ id: 7, name: 'Fern', tag: undefined })), PLANT, CREATED],
  [
    'unknown members that JSON lacks',
    parseTo(() => ({ id: 7, name: 'Fern', x: nothing, y: Symbol() })),
    PLANT,
    CREATED,
  ],
  ['an object and its bytes, with an id beyond 2^53', parseAndKeep, EXACT, CREATED],
  ['an object and its bytes, over the limit', parseAndKeep, PLANT + ' '.repeat(99), refused(41300, TOO_LARGE)],
  ['an object and its text, with an id beyond 2^53', keepText, EXACT, CREATED],
  ['bytes in rawBody alone', parseTo(nothing, (bytes) => bytes), EXACT, CREATED],
  ['a string, and an object in rawBody', parseTo(String, () => ({ id: 7, name: 'Fern' })), EXACT, CREATED],
  ['an array', parseJson, '[]', TOO_LATE],
  ['null', parseTo(() => null), PLANT, TOO_LATE],
  ['nothing', parseTo(nothing), PLANT, TOO_LATE],
  ['nothing of an empty body', parseTo(nothing), '', refused(40001, EMPTY)],
  ['an object in place of an empty body', parseJson, '', refused(40001, EMPTY)],
  ['a body that is none of its own', parseForm, EXACT, CREATED],
  ['a body that it paused', after((request) => request.pause()), EXACT, CREATED],
  ['a body that it wants as text', after((request) => request.setEncoding('utf8')), PLANT, TOO_LATE],
  ['a body that it reads as well', readToo, EXACT, CREATED],
  ['a body that it reads while the token is looked up', readToo, PLANT, TOO_LATE, { authenticate: afterBody }],
]

for (const protocol of ['http', 'h2c'] as const) {
  suite(`a parser before the service, in ${protocol}, that leaves`, () => {
    for (const [name, parser, body, expected, options] of ROWS) {
      test(name, { timeout: 60_000 }, async (t) => {
        const told: string[] = []
        const onError = (error: unknown): unknown => told.push(String(error))
        const plantStore = createService({ maxBodyBytes: 100, onError, ...options })
        const client = await serveIn(t, protocol, (request, response) => {
          parser(request, response, () => plantStore(request, response))
        })

        const answer = await client.send(post('ada', body))

        assert.deepEqual({ status: answer.status, body: answer.body, told }, expected)
        // The plant has the id that the body says.
        if (expected === CREATED) assert.equal((await client.send(del('ada', /\d+/.exec(body)![0]))).status, 204)
      })
    }
  })
}

test('warns once, at the first request whose body a parser has turned into an object', async (t) => {
  const warnings: string[] = []
  const keep = (warning: Error): unknown => warnings.push(String(warning))
  process.on('warning', keep)
  t.after(() => process.off('warning', keep))
  const plantStore = createService()
  const client = await serveIn(t, 'http', (request, response) => {
    const parser = request.headers['x-parser'] === 'object' ? parseJson : parseAndKeep
    parser(request, response, () => plantStore(request, response))
  })

  await client.send(post('ada', PLANT))
  assert.deepEqual(warnings, [])
  for (let i = 0; i < 2; i++) await client.send(post('ada', PLANT, ['x-parser', 'object']))
  assert.deepEqual(warnings, [
    'PlantStoreWarning: A parser has read the body, and parsers round ids beyond 2^53: ' +
      'mount plant-store before the body parser, or keep the bytes in request.rawBody',
  ])
})
