import type { TokenHolder } from '../../src/index.ts'
import { bearer, del, get, post, type Request } from '../support/wire/service.ts'

/** What a request is answered, whichever host the service is mounted in. */
export interface ContractCase {
  readonly name: string
  /** Bodies of the plants that the owner has before. */
  readonly given: readonly string[]
  /** @param token one that only this case uses; it is an owner of its own */
  readonly request: (token: string) => Request
  readonly status: number
  /** Beside Content-Length. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Whether a client of every protocol can send it: HTTP/2 has no doubled Host and no transfer coding. */
  readonly isHttp1Only: boolean
}

const NO_STORE = { 'cache-control': 'no-store' }
const JSON_FIELDS = { 'content-type': 'application/json', ...NO_STORE }
const NO_TOKEN = { 'www-authenticate': 'Bearer realm="plant-store"' }
const BAD_TOKEN = { 'www-authenticate': 'Bearer realm="plant-store", error="invalid_token"' }
const READ_ONLY = {
  'www-authenticate': 'Bearer realm="plant-store", error="insufficient_scope", scope="write"',
}
const ALLOW_PLANTS = { allow: 'GET, HEAD, POST, OPTIONS' }
const ALLOW_PLANT = { allow: 'DELETE, OPTIONS' }

const MONSTERA = '{"id":1,"name":"Monstera deliciosa","tag":"tropical"}'
const given = [3, -1, 2].map((id) => `{"id":${id},"name":"plant ${id}"}`)

const NEEDS_TOKEN = 'A bearer token is needed: send "Authorization: Bearer <token>".'
const UNKNOWN_TOKEN = 'The bearer token is malformed or not known here.'
const MAY_ONLY_READ = 'This bearer token may only read.'
const NO_RESOURCE = 'There is nothing at this path. The plants are at /plants.'
const NO_METHOD = 'The resource does not have this method; Allow lists those it has.'
const BAD_ESCAPE = 'The path holds a malformed percent-escape.'
const WRONG_TYPE = 'The body must be sent with one "Content-Type: application/json", in UTF-8.'
const WRONG_CODING = 'The body must be sent without a Content-Encoding.'
const INT64 = 'must be from -9223372036854775808 to 9223372036854775807'

type Expectation = Pick<ContractCase, 'status' | 'headers' | 'body'>

const ok = (body: string, headers: Record<string, string> = {}): Expectation => ({
  status: 200,
  headers: { ...JSON_FIELDS, ...headers },
  body,
})
const noContent = (headers: Record<string, string> = NO_STORE): Expectation => ({ status: 204, headers, body: '' })
const refused = (error: number, message: string, headers: Record<string, string> = {}): Expectation => ({
  status: Math.trunc(error / 100),
  headers: { ...JSON_FIELDS, ...headers },
  body: JSON.stringify({ error, message }),
})
const notPlant = (...wrong: string[]): Expectation => refused(40002, `The plant is invalid: ${wrong.join('; ')}.`)
const badQuery = (...wrong: string[]): Expectation => refused(40004, `The query is invalid: ${wrong.join('; ')}.`)
const badId = (problem: string): Expectation => refused(40003, `The id in the path ${problem}.`)

function row(
  name: string,
  request: ContractCase['request'],
  expected: Expectation,
  options: Partial<ContractCase> = {},
): ContractCase {
  return { name, request, ...expected, given: [], isHttp1Only: false, ...options }
}

/** Whom the tokens of the rows stand for: each for an owner of its own. */
export function authenticate(token: string): TokenHolder | null {
  if (token === 'refused') return null
  return token === 'reader' ? { owner: token, access: 'read' } : token
}

/** A POST with these fields after Authorization. */
function postWith(fields: readonly string[]): ContractCase['request'] {
  return (token) => ({ method: 'POST', path: '/plants', fields: [...bearer(token), ...fields], body: MONSTERA })
}

function request(method: string, path: string): ContractCase['request'] {
  return (token) => ({ method, path, fields: bearer(token) })
}

function anonymous(method: string, path: string, fields: readonly string[] = []): ContractCase['request'] {
  return () => ({ method, path, fields })
}

function plant(body: string): ContractCase['request'] {
  return (token) => post(token, body)
}

const NEXT = (limit: number, after: number, include = ''): Record<string, string> => ({
  link: `<plants?limit=${limit}&after=${after}${include}>; rel="next"`,
})

/** The cases by what they are about. */
// prettier-ignore
export const CONTRACT_CASES: Readonly<Record<string, readonly ContractCase[]>> = {
  operations: [
    row('POST /plants answers the plant without its id', (t) => post(t, MONSTERA), ok('{"name":"Monstera deliciosa","tag":"tropical"}')),
    row('POST /plants answers no tag if none was given', (t) => post(t, '{"id":1,"name":"Fern"}'), ok('{"name":"Fern"}')),
    row('GET /plants lists ascending by id', (t) => get(t), ok('[{"name":"plant -1"},{"name":"plant 2"},{"name":"plant 3"}]'), { given }),
    row('GET /plants of an owner without plants is an empty list', (t) => get(t), ok('[]')),
    row('HEAD /plants is answered like GET, without a body', request('HEAD', '/plants'), { ...ok(''), headers: { ...JSON_FIELDS, 'content-length': '59' } }, { given }),
    row('DELETE /plants/{id} has no body', (t) => del(t, '2'), noContent(), { given }),
  ],
  paths: [
    row('an escaped path is decoded once', request('DELETE', '/%70lants/%32'), noContent(), { given }),
    row('a segment is not decoded twice', request('DELETE', '/plants/%2532'), badId('is not a decimal integer'), { given }),
    row('an escaped slash separates nothing', request('GET', '/plants%2F1'), refused(40400, NO_RESOURCE)),
    row('case counts in a path', request('GET', '/Plants'), refused(40400, NO_RESOURCE)),
    row('/plants/ is no resource', request('GET', '/plants/'), refused(40400, NO_RESOURCE)),
    row('/plants/1/ is no resource', request('DELETE', '/plants/1/'), refused(40400, NO_RESOURCE)),
    row('//plants is no resource', request('GET', '//plants'), refused(40400, NO_RESOURCE)),
    row('/plants/1/2 is no resource', request('DELETE', '/plants/1/2'), refused(40400, NO_RESOURCE)),
    row('/ is no resource', request('GET', '/'), refused(40400, NO_RESOURCE)),
    row('no resource is said before a token is asked for', anonymous('GET', '/nothing'), refused(40400, NO_RESOURCE)),
    row('a malformed escape is refused', request('DELETE', '/plants/%zz'), refused(40000, BAD_ESCAPE)),
    row('an escape that is no UTF-8 is refused', request('DELETE', '/plants/%E0%A4'), refused(40000, BAD_ESCAPE)),
    row('a malformed escape is refused only after the token', anonymous('DELETE', '/plants/%zz'), refused(40100, NEEDS_TOKEN, NO_TOKEN)),
    row('OPTIONS of a malformed escape needs a token too', anonymous('OPTIONS', '/plants/%zz'), refused(40100, NEEDS_TOKEN, NO_TOKEN)),
  ],
  methods: [
    row('OPTIONS /plants needs no token', anonymous('OPTIONS', '/plants'), noContent(ALLOW_PLANTS)),
    row('OPTIONS /plants/{id} needs no token', anonymous('OPTIONS', '/plants/1'), noContent(ALLOW_PLANT)),
    row('OPTIONS does not look at the id', anonymous('OPTIONS', '/plants/one'), noContent(ALLOW_PLANT)),
    row('/plants has no PUT', request('PUT', '/plants'), refused(40500, NO_METHOD, ALLOW_PLANTS)),
    row('/plants has no DELETE', request('DELETE', '/plants'), refused(40500, NO_METHOD, ALLOW_PLANTS)),
    row('/plants/{id} has no GET', request('GET', '/plants/1'), refused(40500, NO_METHOD, ALLOW_PLANT)),
    row('/plants/{id} has no PATCH', request('PATCH', '/plants/1'), refused(40500, NO_METHOD, ALLOW_PLANT)),
    row('the method is refused before the id', request('GET', '/plants/one'), refused(40500, NO_METHOD, ALLOW_PLANT)),
    row('a token that may only read lists', anonymous('GET', '/plants', bearer('reader')), ok('[]')),
    row('a token that may only read does not create', anonymous('POST', '/plants', bearer('reader')), refused(40300, MAY_ONLY_READ, READ_ONLY)),
    row('a token that may only read does not delete', anonymous('DELETE', '/plants/one', bearer('reader')), refused(40300, MAY_ONLY_READ, READ_ONLY)),
    row('the method is refused before the access', anonymous('PUT', '/plants', bearer('reader')), refused(40500, NO_METHOD, ALLOW_PLANTS)),
    row('the token is asked for before the method is refused', anonymous('PUT', '/plants'), refused(40100, NEEDS_TOKEN, NO_TOKEN)),
  ],
  credentials: [
    row('no credentials', anonymous('GET', '/plants'), refused(40100, NEEDS_TOKEN, NO_TOKEN)),
    row('another scheme', anonymous('GET', '/plants', ['Authorization', 'Basic YWRhOnNlY3JldA==']), refused(40100, NEEDS_TOKEN, NO_TOKEN)),
    row('a malformed token', anonymous('GET', '/plants', ['Authorization', 'Bearer se cret']), refused(40101, UNKNOWN_TOKEN, BAD_TOKEN)),
    row('a scheme without a token', anonymous('GET', '/plants', ['Authorization', 'Bearer']), refused(40101, UNKNOWN_TOKEN, BAD_TOKEN)),
    row('a refused token', anonymous('GET', '/plants', bearer('refused')), refused(40101, UNKNOWN_TOKEN, BAD_TOKEN)),
    row(
      'two Authorization fields, even when equal',
      (token) => ({ method: 'GET', path: '/plants', fields: [...bearer(token), ...bearer(token)] }),
      refused(40101, 'Only one Authorization field may be sent.', BAD_TOKEN),
      { isHttp1Only: true },
    ),
    row('the scheme in any case, and more than one space', (token) => ({ method: 'GET', path: '/plants', fields: ['Authorization', `bEARER   ${token}`] }), ok('[]')),
    row('a token in the query does not count', (token) => ({ method: 'GET', path: `/plants?access_token=${token}`, fields: [] }), refused(40100, NEEDS_TOKEN, NO_TOKEN)),
    row(
      'a token in the body does not count',
      (token) => ({ method: 'POST', path: '/plants', fields: ['Content-Type', 'application/x-www-form-urlencoded'], body: `access_token=${token}` }),
      refused(40100, NEEDS_TOKEN, NO_TOKEN),
    ),
  ],
  'header fields': [
    row('two Host fields', (token) => ({ method: 'GET', path: '/plants', fields: ['Host', 'a', 'Host', 'a', ...bearer(token)] }), refused(40000, 'The request has more than one Host field.'), { isHttp1Only: true }),
    row('two Content-Type fields', postWith(['Content-Type', 'application/json', 'Content-Type', 'application/json']), refused(40000, 'The request has more than one Content-Type field.'), { isHttp1Only: true }),
    row('unsound header fields are said before a token is asked for', anonymous('GET', '/plants', ['Content-Type', 'a/b', 'Content-Type', 'a/b']), refused(40000, 'The request has more than one Content-Type field.'), { isHttp1Only: true }),
    row(
      'a thousand header fields',
      (token) => ({ method: 'GET', path: '/plants', fields: [...bearer(token), ...Array.from({ length: 997 }, () => ['a', '']).flat()] }),
      refused(43100, 'The request has too many header fields, or too large ones.'),
      { isHttp1Only: true },
    ),
    row('Accept is ignored', (token) => ({ method: 'GET', path: '/plants', fields: [...bearer(token), 'Accept', 'text/html'] }), ok('[]')),
  ],
  'content of a body': [
    ...[
      'application/json; charset=utf-8',
      'application/json;charset=UTF8',
      'application/json ; charset="utf-8"',
      'Application/JSON; version=1',
    ].map((type) => row(`Content-Type: ${type}`, postWith(['Content-Type', type]), ok('{"name":"Monstera deliciosa","tag":"tropical"}'))),
    ...['text/plain', 'application/json; charset=latin1', 'application/problem+json', 'application/jsonp', 'application/json, application/json', ''].map(
      (type) => row(`Content-Type: ${type}`, postWith(['Content-Type', type]), refused(41500, WRONG_TYPE, { accept: 'application/json' })),
    ),
    row('no Content-Type', postWith([]), refused(41500, WRONG_TYPE, { accept: 'application/json' })),
    row('Content-Encoding: identity', postWith(['Content-Type', 'application/json', 'Content-Encoding', 'identity']), ok('{"name":"Monstera deliciosa","tag":"tropical"}')),
    row('Content-Encoding: gzip', postWith(['Content-Type', 'application/json', 'Content-Encoding', 'gzip']), refused(41501, WRONG_CODING, { 'accept-encoding': 'identity' })),
    row('a body over the limit', (t) => post(t, `{"id":1,"name":"${'a'.repeat(65_536)}"}`), refused(41300, 'The body is larger than 65536 bytes.')),
  ],
  bodies: [
    row('an empty body', plant(''), refused(40001, 'The body is empty: expected a value at byte 0.')),
    row('a body cut short', plant('{"id":1,'), refused(40001, 'The body ends too early: expected a name in double quotes at byte 8.')),
    row('a body that is no object', plant('[1,2]'), refused(40002, 'The body must be a JSON object.')),
    row('nothing of a plant', plant('{}'), notPlant('id is required', 'name is required')),
    row('a name that is null, and no id', plant('{"name":null}'), notPlant('id is required', 'name must be a string')),
    row('every member wrong', plant('{"id":"1","name":null,"tag":null}'), notPlant('id must be a number', 'name must be a string', 'tag must be a string or absent, not null')),
    ...(
      [
        ['9223372036854775808', INT64], ['-9223372036854775809', INT64], ['1e19', INT64], ['-1e400', INT64],
        ['9007199254740993.5', 'must be an integer'], ['0.5', 'must be an integer'], ['1e-400', 'must be an integer'],
        ['true', 'must be a number'], ['"1"', 'must be a number'], ['null', 'must be a number'], ['[1]', 'must be a number'],
      ] as const
    ).map(([id, problem]) => row(`the id ${id}`, plant(`{"id":${id},"name":"a"}`), notPlant(`id ${problem}`))),
    row('an id of 60,000 digits', (t) => post(t, `{"id":${'9'.repeat(60_000)},"name":"a"}`), notPlant(`id ${INT64}`)),
    ...(
      [
        ['"\\ud800"', 'contains a lone surrogate'], ['"\\udc00\\ud800"', 'contains a lone surrogate'],
        ['"\\u0000"', 'contains U+0000'], ['1', 'must be a string'], ['["a"]', 'must be a string'],
      ] as const
    ).flatMap(([text, problem]) => [
      row(`the name ${text}`, plant(`{"id":1,"name":${text}}`), notPlant(`name ${problem}`)),
      row(`the tag ${text}`, plant(`{"id":1,"name":"a","tag":${text}}`), notPlant(`tag ${problem}`)),
    ]),
    row('a name with both', plant('{"id":1,"name":"\\u0000\\ud800"}'), notPlant('name contains a lone surrogate', 'name contains U+0000')),
    row('the tag null', plant('{"id":1,"name":"a","tag":null}'), notPlant('tag must be a string or absent, not null')),
    row('an id given twice', plant('{"id":1,"name":"a","\\u0069d":1}'), notPlant('id is repeated')),
    row('a name given twice', plant('{"id":1,"name":"a","name":"a"}'), notPlant('name is repeated')),
    row('a tag given twice', plant('{"id":1,"name":"a","tag":"a","tag":"a"}'), notPlant('tag is repeated')),
    row('every member given again and again', plant(`{${'"id":1,"tag":"a","name":"a",'.repeat(2000)}"id":1}`), notPlant(
      ...['id', 'tag', 'name'].map((member) => `${member} is repeated`),
    )),
    row('empty texts', plant('{"id":1,"name":"","tag":""}'), ok('{"name":"","tag":""}')),
    row('unknown members, given twice', plant('{"__proto__":{"name":1},"id":1,"name":"a","x":[{}],"x":null}'), ok('{"name":"a"}')),
    row('text of every plane', plant('{"id":1,"name":"\\"\\\\\\u0001é\\uFFFF🌱","tag":"e\\u0301"}'), ok('{"name":"\\"\\\\\\u0001é\uFFFF🌱","tag":"e\u0301"}')),
    row('an id that is taken', plant('{"id":2.0,"name":"other"}'), refused(40900, 'You already have a plant with this id; it stays as it was.'), { given }),
  ],
  'ids in a path': [
    ...['+1', '1.0', '0x1', '%201', '1%20', '1e3', '%C3%A9', '-', '1%00'].map((id) =>
      row(`the id ${id} in the path`, (t) => del(t, id), badId('is not a decimal integer')),
    ),
    ...['01', '-01', '00'].map((id) => row(`the id ${id} in the path`, (t) => del(t, id), badId('has a leading zero'))),
    ...['9223372036854775808', '-9223372036854775809'].map((id) => row(`the id ${id} in the path`, (t) => del(t, id), badId(INT64))),
    row('an id that the owner has no plant of', (t) => del(t, '4'), refused(40401, 'You have no plant with this id.'), { given }),
    row('a negative id', (t) => del(t, '-1'), noContent(), { given }),
  ],
  queries: [
    row('limit cuts the list short and Link leads on', (t) => get(t, '/plants?limit=2'), ok('[{"name":"plant -1"},{"name":"plant 2"}]', NEXT(2, 2)), { given }),
    row('the last list has no Link', (t) => get(t, '/plants?limit=2&after=2'), ok('[{"name":"plant 3"}]'), { given }),
    row('a limit that just fits has no Link', (t) => get(t, '/plants?limit=3'), ok('[{"name":"plant -1"},{"name":"plant 2"},{"name":"plant 3"}]'), { given }),
    row('a limit of 0 is an empty list', (t) => get(t, '/plants?limit=0'), ok('[]'), { given }),
    row('the largest limit', (t) => get(t, '/plants?limit=2147483647'), ok('[{"name":"plant -1"},{"name":"plant 2"},{"name":"plant 3"}]'), { given }),
    row('after leaves out its own id', (t) => get(t, '/plants?after=-1'), ok('[{"name":"plant 2"},{"name":"plant 3"}]'), { given }),
    row('names and values are decoded', (t) => get(t, '/plants?l%69mit=%31'), ok('[{"name":"plant -1"}]', NEXT(1, -1)), { given }),
    row('unknown parameters are ignored', (t) => get(t, '/plants?x&y=%zz&Limit=a&=&after=2&'), ok('[{"name":"plant 3"}]'), { given }),
    ...(
      [
        ['', 'is empty'], ['=', 'is empty'], ['=-1', 'has a sign'], ['=+1', 'is not a decimal integer'], ['=-0', 'has a sign'],
        ['=1.5', 'is not a decimal integer'], ['=%201', 'is not a decimal integer'], ['=1e1', 'is not a decimal integer'],
        ['=01', 'has a leading zero'], ['=2147483648', 'must be from 0 to 2147483647'],
        ['=1&limit=1', 'is repeated'], ['=1&limit=1&limit=1', 'is repeated'], ['=%zz', 'is not a decimal integer'],
      ] as const
    ).map(([limit, problem]) => row(`limit${limit}`, (t) => get(t, `/plants?limit${limit}`), badQuery(`limit ${problem}`))),
    ...(
      [
        ['', 'is empty'], ['=', 'is empty'], ['=01', 'has a leading zero'], ['=1.0', 'is not a decimal integer'],
        ['=+1', 'is not a decimal integer'], ['=9223372036854775808', INT64], ['=1&after=1', 'is repeated'],
        ['=%', 'is not a decimal integer'],
      ] as const
    ).map(([after, problem]) => row(`after${after}`, (t) => get(t, `/plants?after${after}`), badQuery(`after ${problem}`))),
    row('include=id gives each plant its id, first', (t) => get(t, '/plants?include=id'), ok('[{"id":-1,"name":"plant -1"},{"id":2,"name":"plant 2"},{"id":3,"name":"plant 3"}]'), { given }),
    row('an id beyond 2^53 is exact', (t) => get(t, '/plants?include=id'), ok('[{"id":-9223372036854775808,"name":""},{"id":9007199254740993,"name":"a","tag":"b"}]'), {
      given: ['{"id":9007199254740993,"name":"a","tag":"b"}', '{"id":-9223372036854775808,"name":""}'],
    }),
    row('Link carries include on', (t) => get(t, '/plants?incl%75de=%69d&limit=1&after=-1'), ok('[{"id":2,"name":"plant 2"}]', NEXT(1, 2, '&include=id')), { given }),
    row('include=id of no plants', (t) => get(t, '/plants?include=id'), ok('[]')),
    row('HEAD with include=id is answered like GET, without a body', request('HEAD', '/plants?include=id'), { ...ok(''), headers: { ...JSON_FIELDS, 'content-length': '81' } }, { given }),
    ...['', '=', '=ID', '=name', '=id,name', '=%20id'].map((include) =>
      row(`include${include}`, (t) => get(t, `/plants?include${include}`), badQuery('include must be id')),
    ),
    ...['=id&include=id', '=id&%69nclude=id'].map((include) =>
      row(`include${include}`, (t) => get(t, `/plants?include${include}`), badQuery('include is repeated')),
    ),
    row('include=%zz', (t) => get(t, '/plants?include=%zz'), badQuery('include must be id')),
    row('all parameters wrong', (t) => get(t, '/plants?limit=a&after=b&include=c'), badQuery('limit is not a decimal integer', 'after is not a decimal integer', 'include must be id')),
  ],
}
