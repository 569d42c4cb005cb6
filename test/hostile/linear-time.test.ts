import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { readBearerToken } from '../../src/http/bearer.ts'
import { checkContent } from '../../src/http/content.ts'
import { isHost, readHeaderFields } from '../../src/http/header-fields.ts'
import { parseInt64 } from '../../src/plants/int64.ts'
import { readJson } from '../../src/http/json/reader.ts'
import { parseListQuery } from '../../src/http/list-query.ts'
import { parseNewPlant } from '../../src/http/new-plant.ts'
import { createRouter } from '../../src/http/route.ts'
import { tokenList } from '../../src/standalone/settings/tokens.ts'

/** Each half of it is half of the bytes. */
const LENGTH = 65_536

/** Time quadratic in so many bytes is far more than this, and less than this is lost in the noise. */
const FLOOR_MS = 30

/** Twice the time for twice the bytes, and what a busy machine adds; quadratic is four times. */
const MAX_RATIO = 3

/** A step is as fast as it was at best: what else the machine does makes it slower, never faster. */
const TRIES = 20

/** Makes text of a length: what it begins with, one piece again and again, and what it ends with. */
function fill(begin: string, piece: string, end = ''): (length: number) => string {
  return (length) => begin + piece.repeat((length - begin.length - end.length) / piece.length) + end
}

interface Step {
  readonly name: string
  readonly read: (text: string) => unknown
  readonly inputs: readonly ((length: number) => string)[]
}

const route = createRouter('/api/v1', ['/plants', '/plants/{id}'])

// prettier-ignore
const STEPS: readonly Step[] = [
  {
    name: 'Content-Encoding',
    read: (value) => checkContent('application/json', value),
    inputs: [
      fill(',', ' ', 'x'), fill(',', '\t ', 'x'), fill(',identity', ' ', 'x'), fill(',', ' ', 'identity'),
      fill('', ','), fill('', ', ', 'x'), fill('', ',identity', 'x'), fill('', ', identity ', 'x'), fill(',', 'identity'),
    ],
  },
  {
    name: 'Content-Type',
    read: (value) => checkContent(value, ''),
    inputs: [
      fill('application/json', ' ', 'x'), fill('application/json;', ' ', 'x'), fill('application/json', ' ;', 'x'),
      fill('application/json', ';'), fill('application/json;', 'a'), fill('application/json;', 'a', '='),
      fill('application/json;a=', 'a'), fill('application/json;a="', 'a'), fill('application/json;a="', '\\'),
      fill('application/json;a="', '\\"'), fill('application/json;a="', '\\a'), fill('application/json', ';a="\\"'),
      fill('application/json', ';a="'), fill('application/json', ';a=""'), fill('application/json', ';charset=utf8'),
      fill('application/json;charset="', '\\u', '"'), fill('application/json', ';charset="\\u\\t\\f8"'),
    ],
  },
  {
    name: 'Authorization',
    read: (value) => readBearerToken([value]),
    inputs: [
      fill('Bearer', ' '), fill('Bearer', ' ', '!'), fill('Bearer ', 'a', '!'), fill('Bearer ', '=', '!'),
      fill('Bearer a', '=', '!'), fill('Bearer ', 'a='), fill('Bearer', ' a'), fill('Bearer', '.'), fill('Bearer', '!'),
    ],
  },
  {
    name: 'many header fields',
    read: (values) => readHeaderFields(Array.from({ length: 998 }, (_, i) => {
      return i % 2 === 0 ? 'Transfer-Encoding' : values.slice(0, values.length / 499)
    })),
    inputs: [fill('', ','), fill('', ' '), fill('', ',chunked')],
  },
  {
    name: 'Host',
    read: isHost,
    inputs: [
      fill('', 'a', '/'), fill('', '%41', '%'), fill('', '%'), fill('', ':'), fill('a:', '1', 'x'), fill('', 'a:'),
      fill('[', ':'), fill('[', '1', ']x'), fill('', '['), fill('', '[]'),
    ],
  },
  {
    name: 'a target',
    read: route,
    inputs: [
      fill('', '/'), fill('', '%'), fill('/', '%zz'), fill('/', '%41'), fill('', 'a'), fill('', 'a', ':/'), fill('a://', 'a'),
      fill('', 'a://'), fill('/api/v1/plants', '/'), fill('/api/v1/plants/', '%'), fill('/api/v1/plants/', '%41'),
      fill('/api/v1/%70lants/', '%E0%A4'), fill('/api/%76', '%31'), fill('', '?'), fill('http://h/api/v1', '/%31'),
    ],
  },
  {
    name: 'a query',
    read: parseListQuery,
    inputs: [
      fill('', '&'), fill('', '='), fill('', '%'), fill('', '%&'), fill('', '%zz&'), fill('', '%ff&'), fill('', '%6c&'),
      fill('', 'limit=1&'), fill('', 'after=1&'), fill('', 'limit=%&'), fill('limit=', '1'), fill('limit=', '%31'),
      fill('after=', '9'), fill('after=-', '0'), fill('after=', '%'), fill('', 'limit&after&'),
    ],
  },
  {
    name: 'an int64',
    read: parseInt64,
    inputs: [fill('', '9'), fill('-', '9'), fill('', '0'), fill('', '-'), fill('1', '0', 'x')],
  },
  {
    name: 'a body',
    read: (body) => parseNewPlant(readJson(Buffer.from(body, 'latin1'))),
    inputs: [
      fill('', ' '), fill('', '['), fill('[', '[],', '[]]'), fill('', '{"":'), fill('{', '"id":1,', '"id":1}'),
      fill('{', '"name":"","tag":"","id":1,', '"id":1}'), fill('{', '"\\u0069d":1,', '"id":1}'), fill('{', '"":0,', '"":0}'),
      fill('{"id":', '9', '}'), fill('{"id":-0.', '0', '}'), fill('{"id":0.', '0', '1}'), fill('{"id":1e', '9', '}'),
      fill('{"id":1', '0', 'e-65000}'), fill('{"id":', '0', '}'), fill('[', '1e9,', '1]'), fill('[', '9223372036854775808,', '1]'),
      fill('"', '\\u0000', '"'), fill('"', '\\ud800', '"'), fill('"', '\\n', '"'), fill('"', '\xc3\xa9', '"'), fill('"', 'a'),
      fill('"', '\xc3\xa9', '\xff"'), fill('"', '\xff'), fill('"', '\xef\xbf\xbd', '\xff"'), fill('"', '\x80'), fill('"', '\\'),
      fill('{"id":1,"name":"', '\\ud83c\\udf31', '"}'), fill('{"', '\\u0061', '":1}'), fill('', '\xef\xbb\xbf'),
    ],
  },
  {
    name: 'PLANT_STORE_TOKENS',
    read: (value) => tokenList('PLANT_STORE_TOKENS').parse(value),
    inputs: [
      fill('', ','), fill('', ' ', 'x'), fill('', ':'), fill('', ':', '!'), fill('', ':a', '!'), fill('a:', 'a', '!'),
      fill('a:a', '=', '!'), fill('a:', '='), fill('', 'a'), fill('', 'a:a,'),
    ],
  },
]

/** How long the step takes at best, in milliseconds. */
function timeOf(read: Step['read'], text: string): number {
  const startedAt = performance.now()
  try {
    read(text)
  } catch {
    // Most of what is worst is wrong too.
  }
  return performance.now() - startedAt
}

for (const { name, read, inputs } of STEPS) {
  suite(`${name} is read in time linear in its length`, () => {
    for (const input of inputs) {
      const [half, whole] = [input(LENGTH / 2), input(LENGTH)]
      test(JSON.stringify(`${whole.slice(0, 40)}…${whole.slice(-12)}`), () => {
        let [halfMs, wholeMs] = [Infinity, Infinity]
        const isLinear = (): boolean => wholeMs < FLOOR_MS || wholeMs < MAX_RATIO * halfMs
        for (let i = 0; i < TRIES && !isLinear(); i++) {
          halfMs = Math.min(halfMs, timeOf(read, half))
          wholeMs = Math.min(wholeMs, timeOf(read, whole))
        }
        assert.ok(isLinear(), `${half.length} bytes took ${halfMs} ms, ${whole.length} bytes ${wholeMs} ms`)
      })
    }
  })
}
