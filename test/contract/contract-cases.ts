import type { TokenHolder } from '../../src/index.ts'
import { bearer, del, get, post, type TestRequest } from '../support/service.ts'

/** A request and the response that the contract requires in every host. */
export interface ContractCase {
  /** The behavior, as a test name. */
  readonly name: string
  /** Request bodies that create the plants that the owner already has. */
  readonly existingPlants: readonly string[]
  /** @param token a token for this case only, with an owner of its own */
  readonly request: (token: string) => TestRequest
  readonly status: number
  /** The expected response headers, except Content-Length. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** The error code, if the response is an error. */
  readonly error?: number
  /** Whether only HTTP/1 can express the request: HTTP/2 has no repeated Host and no transfer codings. */
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
const INT64_RULE = 'must be a decimal integer from -9223372036854775808 to 9223372036854775807, without leading zeros'
const LIMIT_RULE = 'limit must be a decimal integer from 0 to 2147483647, without a sign or leading zeros'

type Expectation = Pick<ContractCase, 'status' | 'headers' | 'body' | 'error'>

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
  error,
})
const invalidPlant = (...wrong: string[]): Expectation => rejection(40002, `The plant is invalid: ${wrong.join('; ')}.`)
const invalidQuery = (...wrong: string[]): Expectation => rejection(40004, `The query is invalid: ${wrong.join('; ')}.`)
const INVALID_ID = rejection(40003, `The id in the path ${INT64_RULE}.`)

/**
 * Creates a case.
 * @param name the behavior; for an error response only the rejected request, because "rejects … with" is added
 */
function createCase(
  name: string,
  request: ContractCase['request'],
  expected: Expectation,
  options: Partial<ContractCase> = {},
): ContractCase {
  const behavior = expected.error === undefined ? name : `rejects ${name} with ${expected.error}`
  return { name: behavior, request, ...expected, existingPlants: [], isHttp1Only: false, ...options }
}

/** Maps each token to an owner of the same name, except "refused" and "reader". */
export function authenticate(token: string): TokenHolder | null {
  if (token === 'refused') return null
  return token === 'reader' ? { owner: token, access: 'read' } : token
}

/** Creates a POST with the given header fields after Authorization. */
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

/** The cases, by topic. */
// prettier-ignore
export const CONTRACT_CASES: Readonly<Record<string, readonly ContractCase[]>> = {
  operations: [
    createCase('creates a plant and returns it without its id', (t) => post(t, MONSTERA), success('{"name":"Monstera deliciosa","tag":"tropical"}')),
    createCase('returns no tag if the request has none', (t) => post(t, '{"id":1,"name":"Fern"}'), success('{"name":"Fern"}')),
    createCase('lists plants in ascending order of their ids', (t) => get(t), success('[{"name":"plant -1"},{"name":"plant 2"},{"name":"plant 3"}]'), { existingPlants }),
    createCase('returns an empty list if the owner has no plants', (t) => get(t), success('[]')),
    createCase('responds to HEAD /plants like to GET, but without a body', request('HEAD', '/plants'), { ...success(''), headers: { ...JSON_FIELDS, 'content-length': '59' } }, { existingPlants }),
    createCase('deletes a plant and responds without a body', (t) => del(t, '2'), noContent(), { existingPlants }),
  ],
  paths: [
    createCase('decodes a percent-encoded path once', request('DELETE', '/%70lants/%32'), noContent(), { existingPlants }),
    createCase('a double-encoded path segment', request('DELETE', '/plants/%2532'), INVALID_ID, { existingPlants }),
    createCase('a percent-encoded slash as a separator', request('GET', '/plants%2F1'), rejection(40400, NOT_FOUND)),
    createCase('a path in the wrong case', request('GET', '/Plants'), rejection(40400, NOT_FOUND)),
    createCase('/plants/', request('GET', '/plants/'), rejection(40400, NOT_FOUND)),
    createCase('/plants/1/', request('DELETE', '/plants/1/'), rejection(40400, NOT_FOUND)),
    createCase('//plants', request('GET', '//plants'), rejection(40400, NOT_FOUND)),
    createCase('/plants/1/2', request('DELETE', '/plants/1/2'), rejection(40400, NOT_FOUND)),
    createCase('/', request('GET', '/'), rejection(40400, NOT_FOUND)),
    createCase('an unknown path without a token', anonymousRequest('GET', '/nothing'), rejection(40400, NOT_FOUND)),
    createCase('a malformed percent-escape', request('DELETE', '/plants/%zz'), rejection(40000, MALFORMED_ESCAPE)),
    createCase("a percent-escape that isn't UTF-8", request('DELETE', '/plants/%E0%A4'), rejection(40000, MALFORMED_ESCAPE)),
    createCase('a malformed percent-escape without a token', anonymousRequest('DELETE', '/plants/%zz'), rejection(40100, TOKEN_REQUIRED, BEARER_CHALLENGE)),
    createCase('OPTIONS without a token on a malformed percent-escape', anonymousRequest('OPTIONS', '/plants/%zz'), rejection(40100, TOKEN_REQUIRED, BEARER_CHALLENGE)),
  ],
  methods: [
    createCase('responds to OPTIONS /plants without a token', anonymousRequest('OPTIONS', '/plants'), noContent(ALLOW_PLANTS)),
    createCase('responds to OPTIONS /plants/{id} without a token', anonymousRequest('OPTIONS', '/plants/1'), noContent(ALLOW_PLANT)),
    createCase('responds to OPTIONS /plants/{id} even if the id is invalid', anonymousRequest('OPTIONS', '/plants/one'), noContent(ALLOW_PLANT)),
    createCase('PUT /plants', request('PUT', '/plants'), rejection(40500, METHOD_NOT_ALLOWED, ALLOW_PLANTS)),
    createCase('DELETE /plants', request('DELETE', '/plants'), rejection(40500, METHOD_NOT_ALLOWED, ALLOW_PLANTS)),
    createCase('GET /plants/{id}', request('GET', '/plants/1'), rejection(40500, METHOD_NOT_ALLOWED, ALLOW_PLANT)),
    createCase('PATCH /plants/{id}', request('PATCH', '/plants/1'), rejection(40500, METHOD_NOT_ALLOWED, ALLOW_PLANT)),
    createCase('an unsupported method on an invalid id', request('GET', '/plants/one'), rejection(40500, METHOD_NOT_ALLOWED, ALLOW_PLANT)),
    createCase('lists plants for a read-only token', anonymousRequest('GET', '/plants', bearer('reader')), success('[]')),
    createCase('POST from a read-only token', anonymousRequest('POST', '/plants', bearer('reader')), rejection(40300, READ_ONLY_TOKEN, INSUFFICIENT_SCOPE_CHALLENGE)),
    createCase('DELETE from a read-only token', anonymousRequest('DELETE', '/plants/one', bearer('reader')), rejection(40300, READ_ONLY_TOKEN, INSUFFICIENT_SCOPE_CHALLENGE)),
    createCase('an unsupported method from a read-only token', anonymousRequest('PUT', '/plants', bearer('reader')), rejection(40500, METHOD_NOT_ALLOWED, ALLOW_PLANTS)),
    createCase('an unsupported method without a token', anonymousRequest('PUT', '/plants'), rejection(40100, TOKEN_REQUIRED, BEARER_CHALLENGE)),
  ],
  credentials: [
    createCase('a request without credentials', anonymousRequest('GET', '/plants'), rejection(40100, TOKEN_REQUIRED, BEARER_CHALLENGE)),
    createCase('another authentication scheme', anonymousRequest('GET', '/plants', ['Authorization', 'Basic YWRhOnNlY3JldA==']), rejection(40100, TOKEN_REQUIRED, BEARER_CHALLENGE)),
    createCase('a malformed token', anonymousRequest('GET', '/plants', ['Authorization', 'Bearer se cret']), rejection(40101, UNKNOWN_TOKEN, INVALID_TOKEN_CHALLENGE)),
    createCase('an Authorization header that is just "Bearer"', anonymousRequest('GET', '/plants', ['Authorization', 'Bearer']), rejection(40101, UNKNOWN_TOKEN, INVALID_TOKEN_CHALLENGE)),
    createCase('an unknown token', anonymousRequest('GET', '/plants', bearer('refused')), rejection(40101, UNKNOWN_TOKEN, INVALID_TOKEN_CHALLENGE)),
    createCase(
      'two identical Authorization header fields',
      (token) => ({ method: 'GET', path: '/plants', fields: [...bearer(token), ...bearer(token)] }),
      rejection(40101, 'The request has more than one Authorization field.', INVALID_TOKEN_CHALLENGE),
      { isHttp1Only: true },
    ),
    createCase('POST with an unknown token', anonymousRequest('POST', '/plants', bearer('refused')), rejection(40101, UNKNOWN_TOKEN, INVALID_TOKEN_CHALLENGE)),
    createCase('DELETE with an unknown token', anonymousRequest('DELETE', '/plants/1', bearer('refused')), rejection(40101, UNKNOWN_TOKEN, INVALID_TOKEN_CHALLENGE)),
    createCase('OPTIONS with an unknown token on a malformed percent-escape', anonymousRequest('OPTIONS', '/plants/%zz', bearer('refused')), rejection(40101, UNKNOWN_TOKEN, INVALID_TOKEN_CHALLENGE)),
    createCase('accepts the Bearer scheme in any case, followed by several spaces', (token) => ({ method: 'GET', path: '/plants', fields: ['Authorization', `bEARER   ${token}`] }), success('[]')),
    createCase('a token in the query', (token) => ({ method: 'GET', path: `/plants?access_token=${token}`, fields: [] }), rejection(40100, TOKEN_REQUIRED, BEARER_CHALLENGE)),
    createCase(
      'a token in the body',
      (token) => ({ method: 'POST', path: '/plants', fields: ['Content-Type', 'application/x-www-form-urlencoded'], body: `access_token=${token}` }),
      rejection(40100, TOKEN_REQUIRED, BEARER_CHALLENGE),
    ),
  ],
  'header fields': [
    createCase('two Host header fields', (token) => ({ method: 'GET', path: '/plants', fields: ['Host', 'a', 'Host', 'a', ...bearer(token)] }), rejection(40000, 'The request has more than one Host field.'), { isHttp1Only: true }),
    createCase('two Content-Type header fields', postWithFields(['Content-Type', 'application/json', 'Content-Type', 'application/json']), rejection(40000, 'The request has more than one Content-Type field.'), { isHttp1Only: true }),
    createCase('two Content-Type header fields without a token', anonymousRequest('GET', '/plants', ['Content-Type', 'a/b', 'Content-Type', 'a/b']), rejection(40000, 'The request has more than one Content-Type field.'), { isHttp1Only: true }),
    createCase(
      '1,000 header fields',
      (token) => ({ method: 'GET', path: '/plants', fields: [...bearer(token), ...Array.from({ length: 997 }, () => ['a', '']).flat()] }),
      rejection(43100, 'The request has too many header fields, or they are too large.'),
      { isHttp1Only: true },
    ),
    createCase('ignores Accept', (token) => ({ method: 'GET', path: '/plants', fields: [...bearer(token), 'Accept', 'text/html'] }), success('[]')),
  ],
  'content headers': [
    ...[
      'application/json; charset=utf-8',
      'application/json;charset=UTF8',
      'application/json ; charset="utf-8"',
      'Application/JSON; version=1',
    ].map((type) => createCase(`accepts Content-Type: ${type}`, postWithFields(['Content-Type', type]), success('{"name":"Monstera deliciosa","tag":"tropical"}'))),
    ...['text/plain', 'application/json; charset=latin1', 'application/problem+json', 'application/jsonp', 'application/json, application/json', ''].map(
      (type) => createCase(`Content-Type "${type}"`, postWithFields(['Content-Type', type]), rejection(41500, UNSUPPORTED_TYPE, { accept: 'application/json' })),
    ),
    createCase('a body without Content-Type', postWithFields([]), rejection(41500, UNSUPPORTED_TYPE, { accept: 'application/json' })),
    createCase('accepts Content-Encoding: identity', postWithFields(['Content-Type', 'application/json', 'Content-Encoding', 'identity']), success('{"name":"Monstera deliciosa","tag":"tropical"}')),
    createCase('Content-Encoding: gzip', postWithFields(['Content-Type', 'application/json', 'Content-Encoding', 'gzip']), rejection(41501, UNSUPPORTED_CODING, { 'accept-encoding': 'identity' })),
    createCase('a body over the size limit', (t) => post(t, `{"id":1,"name":"${'a'.repeat(65_536)}"}`), rejection(41300, 'The body is larger than 65536 bytes.')),
  ],
  'request bodies': [
    createCase('an empty body', postPlant(''), rejection(40001, 'The body is empty: expected a value at byte 0.')),
    createCase('a truncated body', postPlant('{"id":1,'), rejection(40001, 'The body ends too early: expected a name in double quotes at byte 8.')),
    ...['[1,2]', 'null', 'true', '1', '"name"'].map((body) => createCase(`the body ${body}`, postPlant(body), rejection(40002, 'The body must be a JSON object.'))),
    createCase('an empty object', postPlant('{}'), invalidPlant('id is required', 'name is required')),
    createCase('a null name and a missing id', postPlant('{"name":null}'), invalidPlant('id is required', 'name must be a string')),
    createCase('a plant whose members are all invalid', postPlant('{"id":"1","name":null,"tag":null}'), invalidPlant('id must be a number', 'name must be a string', 'tag must be a string or absent, not null')),
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
    createCase('a name that contains a lone surrogate and U+0000', postPlant('{"id":1,"name":"\\u0000\\ud800"}'), invalidPlant('name contains a lone surrogate', 'name contains U+0000')),
    createCase('a null tag', postPlant('{"id":1,"name":"a","tag":null}'), invalidPlant('tag must be a string or absent, not null')),
    createCase('an id that is repeated under an escaped name', postPlant('{"id":1,"name":"a","\\u0069d":1}'), invalidPlant('id is repeated')),
    createCase('a repeated name', postPlant('{"id":1,"name":"a","name":"a"}'), invalidPlant('name is repeated')),
    createCase('a repeated tag', postPlant('{"id":1,"name":"a","tag":"a","tag":"a"}'), invalidPlant('tag is repeated')),
    createCase('members that are repeated 2,000 times', postPlant(`{${'"id":1,"tag":"a","name":"a",'.repeat(2000)}"id":1}`), invalidPlant(
      ...['id', 'tag', 'name'].map((member) => `${member} is repeated`),
    )),
    createCase('accepts an empty name and tag', postPlant('{"id":1,"name":"","tag":""}'), success('{"name":"","tag":""}')),
    createCase('ignores unknown members, even repeated ones', postPlant('{"__proto__":{"name":1},"id":1,"name":"a","x":[{}],"x":null}'), success('{"name":"a"}')),
    createCase('preserves text from every Unicode plane', postPlant('{"id":1,"name":"\\"\\\\\\u0001é\\uFFFF🌱","tag":"e\\u0301"}'), success('{"name":"\\"\\\\\\u0001é\uFFFF🌱","tag":"e\u0301"}')),
    createCase('an id that is already in use', postPlant('{"id":2.0,"name":"other"}'), rejection(40900, 'You already have a plant with this id. It was not changed.'), { existingPlants }),
  ],
  'ids in paths': [
    ...[
      ...['+1', '1.0', '0x1', '%201', '1%20', '1e3', '%C3%A9', '-', '1%00', '01', '-01', '00'],
      ...['9223372036854775808', '-9223372036854775809'],
    ].map((id) => createCase(`the id ${id} in the path`, (t) => del(t, id), INVALID_ID)),
    createCase('an unknown id', (t) => del(t, '4'), rejection(40401, 'You have no plant with this id.'), { existingPlants }),
    createCase('deletes a plant with a negative id', (t) => del(t, '-1'), noContent(), { existingPlants }),
  ],
  'query parameters': [
    createCase('ends a list at its limit and links to the next page', (t) => get(t, '/plants?limit=2'), success('[{"name":"plant -1"},{"name":"plant 2"}]', createNextLink(2, 2)), { existingPlants }),
    createCase('returns the last page without a Link header', (t) => get(t, '/plants?limit=2&after=2'), success('[{"name":"plant 3"}]'), { existingPlants }),
    createCase('returns no Link header if exactly limit plants remain', (t) => get(t, '/plants?limit=3'), success('[{"name":"plant -1"},{"name":"plant 2"},{"name":"plant 3"}]'), { existingPlants }),
    createCase('returns an empty list for limit=0', (t) => get(t, '/plants?limit=0'), success('[]'), { existingPlants }),
    createCase('ignores a parameter whose name starts with a question mark', (t) => get(t, '/plants??limit=1'), success('[{"name":"plant -1"},{"name":"plant 2"},{"name":"plant 3"}]'), { existingPlants }),
    createCase('accepts the maximum limit', (t) => get(t, '/plants?limit=2147483647'), success('[{"name":"plant -1"},{"name":"plant 2"},{"name":"plant 3"}]'), { existingPlants }),
    createCase('lists only plants whose id is greater than after', (t) => get(t, '/plants?after=2'), success('[{"name":"plant 3"}]'), { existingPlants }),
    createCase('decodes parameter names and values', (t) => get(t, '/plants?l%69mit=%31'), success('[{"name":"plant -1"}]', createNextLink(1, -1)), { existingPlants }),
    createCase('ignores unknown parameters', (t) => get(t, '/plants?x&y=%zz&Limit=a&=&after=2&'), success('[{"name":"plant 3"}]'), { existingPlants }),
    ...['', '=', '=-1', '=+1', '=-0', '=1.5', '=%201', '=1e1', '=01', '=2147483648', '=0x10', '=Infinity', '=%zz'].map((limit) =>
      createCase(`the query limit${limit}`, (t) => get(t, `/plants?limit${limit}`), invalidQuery(LIMIT_RULE)),
    ),
    ...['=1&limit=1', '=1&limit=1&limit=1', '=a&limit=1'].map((limit) =>
      createCase(`the query limit${limit}`, (t) => get(t, `/plants?limit${limit}`), invalidQuery('limit is repeated')),
    ),
    ...['', '=', '=01', '=1.0', '=+1', '=9223372036854775808', '=%'].map((after) =>
      createCase(`the query after${after}`, (t) => get(t, `/plants?after${after}`), invalidQuery(`after ${INT64_RULE}`)),
    ),
    createCase('the query after=1&after=1', (t) => get(t, '/plants?after=1&after=1'), invalidQuery('after is repeated')),
    createCase('returns the id as the first member of each plant with include=id', (t) => get(t, '/plants?include=id'), success('[{"id":-1,"name":"plant -1"},{"id":2,"name":"plant 2"},{"id":3,"name":"plant 3"}]'), { existingPlants }),
    createCase('returns ids beyond 2^53 exactly', (t) => get(t, '/plants?include=id'), success('[{"id":-9223372036854775808,"name":""},{"id":9007199254740993,"name":"a","tag":"b"}]'), {
      existingPlants: ['{"id":9007199254740993,"name":"a","tag":"b"}', '{"id":-9223372036854775808,"name":""}'],
    }),
    createCase('adds include=id to the Link header', (t) => get(t, '/plants?incl%75de=%69d&limit=1&after=-1'), success('[{"id":2,"name":"plant 2"}]', createNextLink(1, 2, '&include=id')), { existingPlants }),
    createCase('returns an empty list with include=id if the owner has no plants', (t) => get(t, '/plants?include=id'), success('[]')),
    createCase('responds to HEAD with the headers of GET, but without a body (include=id)', request('HEAD', '/plants?include=id'), { ...success(''), headers: { ...JSON_FIELDS, 'content-length': '81' } }, { existingPlants }),
    ...['', '=', '=ID', '=name', '=id,name', '=%20id'].map((include) =>
      createCase(`the query include${include}`, (t) => get(t, `/plants?include${include}`), invalidQuery('include must be id')),
    ),
    ...['=id&include=id', '=id&%69nclude=id'].map((include) =>
      createCase(`the query include${include}`, (t) => get(t, `/plants?include${include}`), invalidQuery('include is repeated')),
    ),
    createCase('the query include=%zz', (t) => get(t, '/plants?include=%zz'), invalidQuery('include must be id')),
    createCase('a query whose parameters are all invalid', (t) => get(t, '/plants?limit=a&after=b&include=c'), invalidQuery(LIMIT_RULE, `after ${INT64_RULE}`, 'include must be id')),
  ],
}
