import type { TokenHolder } from '../../src/index.ts'
import { bearer, del, get, post, type TestRequest } from '../support/wire/service.ts'

/** What a request is answered, whichever host the service is mounted in. */
export interface ContractCase {
  readonly name: string
  /** Bodies of the plants that the owner has before. */
  readonly existingPlants: readonly string[]
  /** @param token one that only this case uses; it is an owner of its own */
  readonly request: (token: string) => TestRequest
  readonly status: number
  /** Beside Content-Length. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Whether a client of every protocol can send it: HTTP/2 has no doubled Host and no transfer coding. */
  readonly isHttp1Only: boolean
}

const NO_STORE = { 'cache-control': 'no-store' }
const JSON_FIELDS = { 'content-type': 'application/json', ...NO_STORE }
const BEARER_CHALLENGE = { 'www-authenticate': 'Bearer realm="plant-store"' }
const INVALID_TOKEN_CHALLENGE = { 'www-authenticate': 'Bearer realm="plant-store", error="invalid_token"' }
const INSUFFICIENT_SCOPE_CHALLENGE = {
  'www-authenticate': 'Bearer realm="plant-store", error="insufficient_scope", scope="write"',
}
const ALLOW_PLANTS = { allow: 'GET, HEAD, POST, OPTIONS' }
const ALLOW_PLANT = { allow: 'DELETE, OPTIONS' }

const MONSTERA = '{"id":1,"name":"Monstera deliciosa","tag":"tropical"}'
const existingPlants = [3, -1, 2].map((id) => `{"id":${id},"name":"plant ${id}"}`)

const TOKEN_REQUIRED = 'A bearer token is required: send "Authorization: Bearer <token>".'
const UNKNOWN_TOKEN = 'The bearer token is invalid.'
const READ_ONLY_TOKEN = 'This bearer token is read-only.'
const NOT_FOUND = 'There is no resource at this path. The plants are at /plants.'
const METHOD_NOT_ALLOWED = 'The resource does not support this method. The Allow header lists the supported methods.'
const MALFORMED_ESCAPE = 'The path contains a malformed percent-escape.'
const UNSUPPORTED_TYPE = 'The Content-Type must be application/json, in UTF-8.'
const UNSUPPORTED_CODING = 'Content-Encoding is not supported. Send the body uncompressed.'
const INT64_RANGE = 'must be from -9223372036854775808 to 9223372036854775807'

type Expectation = Pick<ContractCase, 'status' | 'headers' | 'body'>

const success = (body: string, headers: Record<string, string> = {}): Expectation => ({
  status: 200,
  headers: { ...JSON_FIELDS, ...headers },
  body,
})
const noContent = (headers: Record<string, string> = NO_STORE): Expectation => ({ status: 204, headers, body: '' })
const rejection = (error: number, message: string, headers: Record<string, string> = {}): Expectation => ({
  status: Math.trunc(error / 100),
  headers: { ...JSON_FIELDS, ...headers },
  body: JSON.stringify({ error, message }),
})
const invalidPlant = (...wrong: string[]): Expectation => rejection(40002, `The plant is invalid: ${wrong.join('; ')}.`)
const invalidQuery = (...wrong: string[]): Expectation => rejection(40004, `The query is invalid: ${wrong.join('; ')}.`)
const invalidId = (problem: string): Expectation => rejection(40003, `The id in the path ${problem}.`)

function createCase(
  name: string,
  request: ContractCase['request'],
  expected: Expectation,
  options: Partial<ContractCase> = {},
): ContractCase {
  return { name, request, ...expected, existingPlants: [], isHttp1Only: false, ...options }
}

/** Whom the tokens of the rows stand for: each for an owner of its own. */
export function authenticate(token: string): TokenHolder | null {
  if (token === 'refused') return null
  return token === 'reader' ? { owner: token, access: 'read' } : token
}

/** A POST with these fields after Authorization. */
function postWithFields(fields: readonly string[]): ContractCase['request'] {
  return (token) => ({ method: 'POST', path: '/plants', fields: [...bearer(token), ...fields], body: MONSTERA })
}

function request(method: string, path: string): ContractCase['request'] {
  return (token) => ({ method, path, fields: bearer(token) })
}

function anonymousRequest(method: string, path: string, fields: readonly string[] = []): ContractCase['request'] {
  return () => ({ method, path, fields })
}

function postPlant(body: string): ContractCase['request'] {
  return (token) => post(token, body)
}

const createNextLink = (limit: number, after: number, include = ''): Record<string, string> => ({
  link: `<plants?limit=${limit}&after=${after}${include}>; rel="next"`,
})

/** The cases by what they are about. */
// prettier-ignore
export const CONTRACT_CASES: Readonly<Record<string, readonly ContractCase[]>> = {
  operations: [
    createCase('POST /plants answers the plant without its id', (t) => post(t, MONSTERA), success('{"name":"Monstera deliciosa","tag":"tropical"}')),
    createCase('POST /plants answers no tag if none was given', (t) => post(t, '{"id":1,"name":"Fern"}'), success('{"name":"Fern"}')),
    createCase('GET /plants lists ascending by id', (t) => get(t), success('[{"name":"plant -1"},{"name":"plant 2"},{"name":"plant 3"}]'), { existingPlants }),
    createCase('GET /plants of an owner without plants is an empty list', (t) => get(t), success('[]')),
    createCase('HEAD /plants is answered like GET, without a body', request('HEAD', '/plants'), { ...success(''), headers: { ...JSON_FIELDS, 'content-length': '59' } }, { existingPlants }),
    createCase('DELETE /plants/{id} has no body', (t) => del(t, '2'), noContent(), { existingPlants }),
  ],
  paths: [
    createCase('an escaped path is decoded once', request('DELETE', '/%70lants/%32'), noContent(), { existingPlants }),
    createCase('a segment is not decoded twice', request('DELETE', '/plants/%2532'), invalidId('is not a decimal integer'), { existingPlants }),
    createCase('an escaped slash separates nothing', request('GET', '/plants%2F1'), rejection(40400, NOT_FOUND)),
    createCase('case counts in a path', request('GET', '/Plants'), rejection(40400, NOT_FOUND)),
    createCase('/plants/ is no resource', request('GET', '/plants/'), rejection(40400, NOT_FOUND)),
    createCase('/plants/1/ is no resource', request('DELETE', '/plants/1/'), rejection(40400, NOT_FOUND)),
    createCase('//plants is no resource', request('GET', '//plants'), rejection(40400, NOT_FOUND)),
    createCase('/plants/1/2 is no resource', request('DELETE', '/plants/1/2'), rejection(40400, NOT_FOUND)),
    createCase('/ is no resource', request('GET', '/'), rejection(40400, NOT_FOUND)),
    createCase('no resource is said before a token is asked for', anonymousRequest('GET', '/nothing'), rejection(40400, NOT_FOUND)),
    createCase('a malformed escape is refused', request('DELETE', '/plants/%zz'), rejection(40000, MALFORMED_ESCAPE)),
    createCase('an escape that is no UTF-8 is refused', request('DELETE', '/plants/%E0%A4'), rejection(40000, MALFORMED_ESCAPE)),
    createCase('a malformed escape is refused only after the token', anonymousRequest('DELETE', '/plants/%zz'), rejection(40100, TOKEN_REQUIRED, BEARER_CHALLENGE)),
    createCase('OPTIONS of a malformed escape needs a token too', anonymousRequest('OPTIONS', '/plants/%zz'), rejection(40100, TOKEN_REQUIRED, BEARER_CHALLENGE)),
  ],
  methods: [
    createCase('OPTIONS /plants needs no token', anonymousRequest('OPTIONS', '/plants'), noContent(ALLOW_PLANTS)),
    createCase('OPTIONS /plants/{id} needs no token', anonymousRequest('OPTIONS', '/plants/1'), noContent(ALLOW_PLANT)),
    createCase('OPTIONS does not look at the id', anonymousRequest('OPTIONS', '/plants/one'), noContent(ALLOW_PLANT)),
    createCase('/plants has no PUT', request('PUT', '/plants'), rejection(40500, METHOD_NOT_ALLOWED, ALLOW_PLANTS)),
    createCase('/plants has no DELETE', request('DELETE', '/plants'), rejection(40500, METHOD_NOT_ALLOWED, ALLOW_PLANTS)),
    createCase('/plants/{id} has no GET', request('GET', '/plants/1'), rejection(40500, METHOD_NOT_ALLOWED, ALLOW_PLANT)),
    createCase('/plants/{id} has no PATCH', request('PATCH', '/plants/1'), rejection(40500, METHOD_NOT_ALLOWED, ALLOW_PLANT)),
    createCase('the method is refused before the id', request('GET', '/plants/one'), rejection(40500, METHOD_NOT_ALLOWED, ALLOW_PLANT)),
    createCase('a token that may only read lists', anonymousRequest('GET', '/plants', bearer('reader')), success('[]')),
    createCase('a token that may only read does not create', anonymousRequest('POST', '/plants', bearer('reader')), rejection(40300, READ_ONLY_TOKEN, INSUFFICIENT_SCOPE_CHALLENGE)),
    createCase('a token that may only read does not delete', anonymousRequest('DELETE', '/plants/one', bearer('reader')), rejection(40300, READ_ONLY_TOKEN, INSUFFICIENT_SCOPE_CHALLENGE)),
    createCase('the method is refused before the access', anonymousRequest('PUT', '/plants', bearer('reader')), rejection(40500, METHOD_NOT_ALLOWED, ALLOW_PLANTS)),
    createCase('the token is asked for before the method is refused', anonymousRequest('PUT', '/plants'), rejection(40100, TOKEN_REQUIRED, BEARER_CHALLENGE)),
  ],
  credentials: [
    createCase('no credentials', anonymousRequest('GET', '/plants'), rejection(40100, TOKEN_REQUIRED, BEARER_CHALLENGE)),
    createCase('another scheme', anonymousRequest('GET', '/plants', ['Authorization', 'Basic YWRhOnNlY3JldA==']), rejection(40100, TOKEN_REQUIRED, BEARER_CHALLENGE)),
    createCase('a malformed token', anonymousRequest('GET', '/plants', ['Authorization', 'Bearer se cret']), rejection(40101, UNKNOWN_TOKEN, INVALID_TOKEN_CHALLENGE)),
    createCase('a scheme without a token', anonymousRequest('GET', '/plants', ['Authorization', 'Bearer']), rejection(40101, UNKNOWN_TOKEN, INVALID_TOKEN_CHALLENGE)),
    createCase('a refused token', anonymousRequest('GET', '/plants', bearer('refused')), rejection(40101, UNKNOWN_TOKEN, INVALID_TOKEN_CHALLENGE)),
    createCase(
      'two Authorization fields, even when equal',
      (token) => ({ method: 'GET', path: '/plants', fields: [...bearer(token), ...bearer(token)] }),
      rejection(40101, 'The request has more than one Authorization field.', INVALID_TOKEN_CHALLENGE),
      { isHttp1Only: true },
    ),
    createCase('the scheme in any case, and more than one space', (token) => ({ method: 'GET', path: '/plants', fields: ['Authorization', `bEARER   ${token}`] }), success('[]')),
    createCase('a token in the query does not count', (token) => ({ method: 'GET', path: `/plants?access_token=${token}`, fields: [] }), rejection(40100, TOKEN_REQUIRED, BEARER_CHALLENGE)),
    createCase(
      'a token in the body does not count',
      (token) => ({ method: 'POST', path: '/plants', fields: ['Content-Type', 'application/x-www-form-urlencoded'], body: `access_token=${token}` }),
      rejection(40100, TOKEN_REQUIRED, BEARER_CHALLENGE),
    ),
  ],
  'header fields': [
    createCase('two Host fields', (token) => ({ method: 'GET', path: '/plants', fields: ['Host', 'a', 'Host', 'a', ...bearer(token)] }), rejection(40000, 'The request has more than one Host field.'), { isHttp1Only: true }),
    createCase('two Content-Type fields', postWithFields(['Content-Type', 'application/json', 'Content-Type', 'application/json']), rejection(40000, 'The request has more than one Content-Type field.'), { isHttp1Only: true }),
    createCase('unsound header fields are said before a token is asked for', anonymousRequest('GET', '/plants', ['Content-Type', 'a/b', 'Content-Type', 'a/b']), rejection(40000, 'The request has more than one Content-Type field.'), { isHttp1Only: true }),
    createCase(
      'a thousand header fields',
      (token) => ({ method: 'GET', path: '/plants', fields: [...bearer(token), ...Array.from({ length: 997 }, () => ['a', '']).flat()] }),
      rejection(43100, 'The request has too many header fields, or they are too large.'),
      { isHttp1Only: true },
    ),
    createCase('Accept is ignored', (token) => ({ method: 'GET', path: '/plants', fields: [...bearer(token), 'Accept', 'text/html'] }), success('[]')),
  ],
  'content of a body': [
    ...[
      'application/json; charset=utf-8',
      'application/json;charset=UTF8',
      'application/json ; charset="utf-8"',
      'Application/JSON; version=1',
    ].map((type) => createCase(`Content-Type: ${type}`, postWithFields(['Content-Type', type]), success('{"name":"Monstera deliciosa","tag":"tropical"}'))),
    ...['text/plain', 'application/json; charset=latin1', 'application/problem+json', 'application/jsonp', 'application/json, application/json', ''].map(
      (type) => createCase(`Content-Type: ${type}`, postWithFields(['Content-Type', type]), rejection(41500, UNSUPPORTED_TYPE, { accept: 'application/json' })),
    ),
    createCase('no Content-Type', postWithFields([]), rejection(41500, UNSUPPORTED_TYPE, { accept: 'application/json' })),
    createCase('Content-Encoding: identity', postWithFields(['Content-Type', 'application/json', 'Content-Encoding', 'identity']), success('{"name":"Monstera deliciosa","tag":"tropical"}')),
    createCase('Content-Encoding: gzip', postWithFields(['Content-Type', 'application/json', 'Content-Encoding', 'gzip']), rejection(41501, UNSUPPORTED_CODING, { 'accept-encoding': 'identity' })),
    createCase('a body over the limit', (t) => post(t, `{"id":1,"name":"${'a'.repeat(65_536)}"}`), rejection(41300, 'The body is larger than 65536 bytes.')),
  ],
  bodies: [
    createCase('an empty body', postPlant(''), rejection(40001, 'The body is empty: expected a value at byte 0.')),
    createCase('a body cut short', postPlant('{"id":1,'), rejection(40001, 'The body ends too early: expected a name in double quotes at byte 8.')),
    createCase('a body that is no object', postPlant('[1,2]'), rejection(40002, 'The body must be a JSON object.')),
    createCase('nothing of a plant', postPlant('{}'), invalidPlant('id is required', 'name is required')),
    createCase('a name that is null, and no id', postPlant('{"name":null}'), invalidPlant('id is required', 'name must be a string')),
    createCase('every member wrong', postPlant('{"id":"1","name":null,"tag":null}'), invalidPlant('id must be a number', 'name must be a string', 'tag must be a string or absent, not null')),
    ...(
      [
        ['9223372036854775808', INT64_RANGE], ['-9223372036854775809', INT64_RANGE], ['1e19', INT64_RANGE], ['-1e400', INT64_RANGE],
        ['9007199254740993.5', 'must be an integer'], ['0.5', 'must be an integer'], ['1e-400', 'must be an integer'],
        ['true', 'must be a number'], ['"1"', 'must be a number'], ['null', 'must be a number'], ['[1]', 'must be a number'],
      ] as const
    ).map(([id, problem]) => createCase(`the id ${id}`, postPlant(`{"id":${id},"name":"a"}`), invalidPlant(`id ${problem}`))),
    createCase('an id of 60,000 digits', (t) => post(t, `{"id":${'9'.repeat(60_000)},"name":"a"}`), invalidPlant(`id ${INT64_RANGE}`)),
    ...(
      [
        ['"\\ud800"', 'contains a lone surrogate'], ['"\\udc00\\ud800"', 'contains a lone surrogate'],
        ['"\\u0000"', 'contains U+0000'], ['1', 'must be a string'], ['["a"]', 'must be a string'],
      ] as const
    ).flatMap(([text, problem]) => [
      createCase(`the name ${text}`, postPlant(`{"id":1,"name":${text}}`), invalidPlant(`name ${problem}`)),
      createCase(`the tag ${text}`, postPlant(`{"id":1,"name":"a","tag":${text}}`), invalidPlant(`tag ${problem}`)),
    ]),
    createCase('a name with both', postPlant('{"id":1,"name":"\\u0000\\ud800"}'), invalidPlant('name contains a lone surrogate', 'name contains U+0000')),
    createCase('the tag null', postPlant('{"id":1,"name":"a","tag":null}'), invalidPlant('tag must be a string or absent, not null')),
    createCase('an id given twice', postPlant('{"id":1,"name":"a","\\u0069d":1}'), invalidPlant('id is repeated')),
    createCase('a name given twice', postPlant('{"id":1,"name":"a","name":"a"}'), invalidPlant('name is repeated')),
    createCase('a tag given twice', postPlant('{"id":1,"name":"a","tag":"a","tag":"a"}'), invalidPlant('tag is repeated')),
    createCase('every member given again and again', postPlant(`{${'"id":1,"tag":"a","name":"a",'.repeat(2000)}"id":1}`), invalidPlant(
      ...['id', 'tag', 'name'].map((member) => `${member} is repeated`),
    )),
    createCase('empty texts', postPlant('{"id":1,"name":"","tag":""}'), success('{"name":"","tag":""}')),
    createCase('unknown members, given twice', postPlant('{"__proto__":{"name":1},"id":1,"name":"a","x":[{}],"x":null}'), success('{"name":"a"}')),
    createCase('text of every plane', postPlant('{"id":1,"name":"\\"\\\\\\u0001é\\uFFFF🌱","tag":"e\\u0301"}'), success('{"name":"\\"\\\\\\u0001é\uFFFF🌱","tag":"e\u0301"}')),
    createCase('an id that is taken', postPlant('{"id":2.0,"name":"other"}'), rejection(40900, 'You already have a plant with this id. It was not changed.'), { existingPlants }),
  ],
  'ids in a path': [
    ...['+1', '1.0', '0x1', '%201', '1%20', '1e3', '%C3%A9', '-', '1%00'].map((id) =>
      createCase(`the id ${id} in the path`, (t) => del(t, id), invalidId('is not a decimal integer')),
    ),
    ...['01', '-01', '00'].map((id) => createCase(`the id ${id} in the path`, (t) => del(t, id), invalidId('has a leading zero'))),
    ...['9223372036854775808', '-9223372036854775809'].map((id) => createCase(`the id ${id} in the path`, (t) => del(t, id), invalidId(INT64_RANGE))),
    createCase('an id that the owner has no plant of', (t) => del(t, '4'), rejection(40401, 'You have no plant with this id.'), { existingPlants }),
    createCase('a negative id', (t) => del(t, '-1'), noContent(), { existingPlants }),
  ],
  queries: [
    createCase('limit cuts the list short and Link leads on', (t) => get(t, '/plants?limit=2'), success('[{"name":"plant -1"},{"name":"plant 2"}]', createNextLink(2, 2)), { existingPlants }),
    createCase('the last list has no Link', (t) => get(t, '/plants?limit=2&after=2'), success('[{"name":"plant 3"}]'), { existingPlants }),
    createCase('a limit that just fits has no Link', (t) => get(t, '/plants?limit=3'), success('[{"name":"plant -1"},{"name":"plant 2"},{"name":"plant 3"}]'), { existingPlants }),
    createCase('a limit of 0 is an empty list', (t) => get(t, '/plants?limit=0'), success('[]'), { existingPlants }),
    createCase('the largest limit', (t) => get(t, '/plants?limit=2147483647'), success('[{"name":"plant -1"},{"name":"plant 2"},{"name":"plant 3"}]'), { existingPlants }),
    createCase('after leaves out its own id', (t) => get(t, '/plants?after=-1'), success('[{"name":"plant 2"},{"name":"plant 3"}]'), { existingPlants }),
    createCase('names and values are decoded', (t) => get(t, '/plants?l%69mit=%31'), success('[{"name":"plant -1"}]', createNextLink(1, -1)), { existingPlants }),
    createCase('unknown parameters are ignored', (t) => get(t, '/plants?x&y=%zz&Limit=a&=&after=2&'), success('[{"name":"plant 3"}]'), { existingPlants }),
    ...(
      [
        ['', 'is empty'], ['=', 'is empty'], ['=-1', 'has a sign'], ['=+1', 'is not a decimal integer'], ['=-0', 'has a sign'],
        ['=1.5', 'is not a decimal integer'], ['=%201', 'is not a decimal integer'], ['=1e1', 'is not a decimal integer'],
        ['=01', 'has a leading zero'], ['=2147483648', 'must be from 0 to 2147483647'],
        ['=1&limit=1', 'is repeated'], ['=1&limit=1&limit=1', 'is repeated'], ['=%zz', 'is not a decimal integer'],
      ] as const
    ).map(([limit, problem]) => createCase(`limit${limit}`, (t) => get(t, `/plants?limit${limit}`), invalidQuery(`limit ${problem}`))),
    ...(
      [
        ['', 'is empty'], ['=', 'is empty'], ['=01', 'has a leading zero'], ['=1.0', 'is not a decimal integer'],
        ['=+1', 'is not a decimal integer'], ['=9223372036854775808', INT64_RANGE], ['=1&after=1', 'is repeated'],
        ['=%', 'is not a decimal integer'],
      ] as const
    ).map(([after, problem]) => createCase(`after${after}`, (t) => get(t, `/plants?after${after}`), invalidQuery(`after ${problem}`))),
    createCase('include=id gives each plant its id, first', (t) => get(t, '/plants?include=id'), success('[{"id":-1,"name":"plant -1"},{"id":2,"name":"plant 2"},{"id":3,"name":"plant 3"}]'), { existingPlants }),
    createCase('an id beyond 2^53 is exact', (t) => get(t, '/plants?include=id'), success('[{"id":-9223372036854775808,"name":""},{"id":9007199254740993,"name":"a","tag":"b"}]'), {
      existingPlants: ['{"id":9007199254740993,"name":"a","tag":"b"}', '{"id":-9223372036854775808,"name":""}'],
    }),
    createCase('Link carries include on', (t) => get(t, '/plants?incl%75de=%69d&limit=1&after=-1'), success('[{"id":2,"name":"plant 2"}]', createNextLink(1, 2, '&include=id')), { existingPlants }),
    createCase('include=id of no plants', (t) => get(t, '/plants?include=id'), success('[]')),
    createCase('HEAD with include=id is answered like GET, without a body', request('HEAD', '/plants?include=id'), { ...success(''), headers: { ...JSON_FIELDS, 'content-length': '81' } }, { existingPlants }),
    ...['', '=', '=ID', '=name', '=id,name', '=%20id'].map((include) =>
      createCase(`include${include}`, (t) => get(t, `/plants?include${include}`), invalidQuery('include must be id')),
    ),
    ...['=id&include=id', '=id&%69nclude=id'].map((include) =>
      createCase(`include${include}`, (t) => get(t, `/plants?include${include}`), invalidQuery('include is repeated')),
    ),
    createCase('include=%zz', (t) => get(t, '/plants?include=%zz'), invalidQuery('include must be id')),
    createCase('all parameters wrong', (t) => get(t, '/plants?limit=a&after=b&include=c'), invalidQuery('limit is not a decimal integer', 'after is not a decimal integer', 'include must be id')),
  ],
}
