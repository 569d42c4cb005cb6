import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { ERRORS } from '../../src/http/errors.ts'
import type { OperationObject } from '../../src/openapi/description.ts'
import { openapi } from '../../src/openapi/openapi.ts'
import { programDescription } from '../../src/standalone/paths/program-description.ts'
import { VERSION } from '../../src/version.ts'

/** Returns the paths of all empty strings, arrays and objects in a document. */
function findEmptyValues(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return value === '' ? [path] : []
  const members = Object.entries(value)
  return members.length === 0 ? [path] : members.flatMap(([name, member]) => findEmptyValues(member, `${path}/${name}`))
}

test('the OpenAPI description has no empty strings, lists or objects', () => {
  // These are empty on purpose: tokens have no OAuth scopes, OPTIONS needs no token, some responses have no headers,
  // and the service has no webhooks.
  const isMeant = /\/(bearerToken|options\/security|headers|webhooks)$/
  const places = findEmptyValues(openapi).filter((place) => !isMeant.test(place))
  assert.deepEqual(places, [])
})

test('the OpenAPI description states the version of the package', () => {
  assert.equal(openapi.info.version, VERSION)
})

test('the OpenAPI description requires a token for every operation except OPTIONS', () => {
  const operations = Object.values(openapi.paths).flatMap((item) => Object.entries<OperationObject>(item as never))
  const open = operations.filter(([, { security }]) => security !== undefined)
  assert.deepEqual(openapi.security, [{ bearerToken: [] }])
  const methods = open.map(([method, { security }]) => `${method} ${security?.length}`)
  assert.deepEqual(methods, ['options 0', 'options 0'])
})

test('the OpenAPI description requires only the path parameter', () => {
  const parameters = Object.values(openapi.components.parameters)
  const described = parameters.map((parameter) => `${parameter.name} ${parameter.in} ${parameter.required}`)
  assert.deepEqual(described, ['id path true', 'limit query false', 'after query false', 'include query false'])
})

// Tools ignore parameters of a path item.
test('every operation in the OpenAPI description declares its own path parameter', () => {
  for (const [path, item] of Object.entries<object>(programDescription.paths)) {
    for (const [method, { operationId, parameters = [] }] of Object.entries<OperationObject>(item as never)) {
      assert.match(method, /^(get|head|post|delete|options)$/)
      const isInPath = parameters.some((parameter) => '$ref' in parameter && parameter.$ref.endsWith('/id'))
      assert.equal(isInPath, path.includes('{id}'), operationId)
    }
  }
})

test('the OpenAPI description has the same responses for HEAD as for GET, but without bodies', () => {
  const { get, head } = openapi.paths['/plants']
  const headOnly = { operationId: 'listPlantsHead', summary: 'List plants, headers only', responses: head.responses }
  assert.deepEqual(head, { ...get, ...headOnly })
  assert.deepEqual(Object.keys(head.responses), Object.keys(get.responses))
  for (const [status, { content, ...response }] of Object.entries(get.responses)) {
    assert.deepEqual([head.responses[status], content === undefined], [{ headers: {}, ...response }, false])
  }
})

test('the OpenAPI description of a 503 response contains both possible error messages', () => {
  const { storeUnavailable, outcomeUnknown } = ERRORS
  const { description } = openapi.paths['/plants'].get.responses[503]!
  assert.equal(description, `${storeUnavailable.message} Or: ${outcomeUnknown.message}`)
})

test('the OpenAPI description marks response headers as required if they are always present', () => {
  const headers = Object.entries(openapi.components.headers).filter(([, { required }]) => required)
  const requiredNames = headers.map(([name]) => name)
  assert.deepEqual(requiredNames, ['Cache-Control', 'Allow', 'WWW-Authenticate', 'Retry-After'])
})

test('the server URL in the OpenAPI description resolves correctly under any path prefix', () => {
  const [{ url }] = programDescription.servers as [{ url: string }]
  for (const folder of ['http://127.0.0.1:3000/', 'https://plants.example/api/v1/']) {
    assert.equal(new URL(url, `${folder}openapi.json`).href, folder)
  }
})

test('the OpenAPI description avoids \\u0000, which client generators turn into NUL bytes in source code', () => {
  assert.doesNotMatch(JSON.stringify(openapi), /u0000/)
})

const ajv = new Ajv2020()
  .addFormat('int32', { type: 'number', validate: (value) => Math.abs(value) < 2 ** 31 })
  .addFormat('int64', { type: 'number', validate: (value) => Math.abs(value) <= 2 ** 63 })

const FERN = { id: 1, name: 'Fern', tag: 'green' }

const { schemas, parameters } = openapi.components
const { id, limit, after, include } = parameters
const SCHEMAS = { ...schemas, id: id.schema, limit: limit.schema, after: after.schema, include: include.schema }

const ROWS: readonly (readonly [name: keyof typeof SCHEMAS, isValid: boolean, ...values: readonly unknown[]])[] = [
  ['NewPlant', true, FERN, { id: 1, name: '' }, { ...FERN, height: 7 }],
  ['NewPlant', false, { name: 'Fern' }, { id: 1 }, [FERN]],
  ['NewPlant', false, { ...FERN, id: 1.5 }, { ...FERN, id: '1' }, { ...FERN, id: 1e19 }],
  ['NewPlant', false, { ...FERN, name: 7 }, { ...FERN, name: 'a\0' }, { ...FERN, tag: null }, { ...FERN, tag: '\0a' }],
  ['Plant', true, { name: 'Fern', tag: '' }, { name: 'Fern' }],
  ['Plant', false, FERN, { tag: 'green' }, { name: 7 }, { name: 'Fern', tag: null }, null],
  ['ListedPlant', true, FERN, { name: 'Fern' }, { ...FERN, id: -(2 ** 62) }],
  ['ListedPlant', false, { id: 1 }, { ...FERN, id: '1' }, { ...FERN, height: 7 }],
  ['Error', true, { error: 40000, message: 'No.' }],
  ['Error', false, { error: 40000 }, { message: 'No.' }, { error: '40000', message: 'No.' }, []],
  ['Error', false, { error: 2 ** 31, message: 'No.' }, { error: 40000, message: 7 }],
  ['Error', false, { error: 40000, message: 'No.', stack: '' }],
  ['id', true, -1, 2 ** 53],
  ['id', false, 1e19, 1.5],
  ['limit', true, 0, 2 ** 31 - 1],
  ['limit', false, -1, 2 ** 31, 1.5],
  ['after', true, -1, 2 ** 53],
  ['after', false, 1e19, 1.5],
  ['include', true, 'id'],
  ['include', false, '', 'name'],
]

suite('schemas in the OpenAPI description', () => {
  for (const [name, isValid, ...values] of ROWS) {
    for (const value of values) {
      test(`${name} ${isValid ? 'accepts' : 'rejects'} ${JSON.stringify(value)}`, () => {
        assert.equal(ajv.validate(SCHEMAS[name], value), isValid)
      })
    }
  }
})
