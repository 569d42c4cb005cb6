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
import { attempt } from '../../src/maybe-promise.ts'
import { tokenList } from '../../src/standalone/settings/tokens.ts'
import { cpuTime } from '../support/cpu-time.ts'

const LENGTH = 131_072

/** CPU time for so many bytes, in microseconds. Linear time is a third of it; quadratic time in a pattern is 16 s. */
const MAX_US = 120_000

/** Makes long text: what it begins with, one piece again and again, and what it ends with. */
function fill(begin: string, piece: string, end = ''): string {
  return begin + piece.repeat((LENGTH - begin.length - end.length) / piece.length) + end
}

interface Step {
  readonly name: string
  readonly read: (text: string) => unknown
  readonly inputs: readonly string[]
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
      fill('{"id":1', '0', 'e-131000}'), fill('{"id":', '0', '}'), fill('[', '1e9,', '1]'), fill('[', '9223372036854775808,', '1]'),
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

/** Most of what is worst is wrong too. */
const ignore = (): undefined => undefined

for (const { name, read, inputs } of STEPS) {
  suite(`${name} is read in time linear in its length`, () => {
    for (const input of inputs) {
      test(JSON.stringify(`${input.slice(0, 40)}…${input.slice(-12)}`), () => {
        const time = cpuTime(() => attempt(() => read(input), ignore), MAX_US)
        assert.ok(time < MAX_US, `it took ${time} µs`)
      })
    }
  })
}
