import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { ERRORS } from '../../src/http/errors.ts'
import type { OperationObject } from '../../src/openapi/description.ts'
import { openapi } from '../../src/openapi/openapi.ts'
import { programDescription } from '../../src/standalone/paths/program-description.ts'
import { VERSION } from '../../src/version.ts'

/** Where a document holds an empty text, list or object. */
function findEmptyValues(value: unknown, path = ''): string[] {
  if (typeof value !== 'object' || value === null) return value === '' ? [path] : []
  const members = Object.entries(value)
  return members.length === 0 ? [path] : members.flatMap(([name, member]) => findEmptyValues(member, `${path}/${name}`))
}

test('says something wherever it speaks', () => {
  // A token has no scopes, OPTIONS needs none, not every response has a header field of its own, and nothing has webhooks.
  const isMeant = /\/(bearerToken|options\/security|headers|webhooks)$/
  const places = findEmptyValues(openapi).filter((place) => !isMeant.test(place))
  assert.deepEqual(places, [])
})

test('is of this version', () => {
  assert.equal(openapi.info.version, VERSION)
})

test('asks for a token, but for OPTIONS', () => {
  const operations = Object.values(openapi.paths).flatMap((item) => Object.entries<OperationObject>(item as never))
  const open = operations.filter(([, { security }]) => security !== undefined)
  assert.deepEqual(openapi.security, [{ bearerToken: [] }])
  const methods = open.map(([method, { security }]) => `${method} ${security?.length}`)
  assert.deepEqual(methods, ['options 0', 'options 0'])
})

test('needs the parameter of a path, and no parameter of a query', () => {
  const parameters = Object.values(openapi.components.parameters)
  const described = parameters.map((parameter) => `${parameter.name} ${parameter.in} ${parameter.required}`)
  assert.deepEqual(described, ['id path true', 'limit query false', 'after query false', 'include query false'])
})

test('gives paths nothing but operations, because tools overlook what they share', () => {
  for (const [path, item] of Object.entries<object>(programDescription.paths)) {
    for (const [method, { operationId, parameters = [] }] of Object.entries<OperationObject>(item as never)) {
      assert.match(method, /^(get|head|post|delete|options)$/)
      const isInPath = parameters.some((parameter) => '$ref' in parameter && parameter.$ref.endsWith('/id'))
      assert.equal(isInPath, path.includes('{id}'), operationId)
    }
  }
})

test('describes HEAD as GET without the bodies', () => {
  const { get, head } = openapi.paths['/plants']
  const ofHead = { operationId: 'listPlantsHead', summary: 'List plants, without the body', responses: head.responses }
  assert.deepEqual(head, { ...get, ...ofHead })
  assert.deepEqual(Object.keys(head.responses), Object.keys(get.responses))
  for (const [status, { content, ...response }] of Object.entries(get.responses)) {
    assert.deepEqual([head.responses[status], content === undefined], [{ headers: {}, ...response }, false])
  }
})

test('says of a status with several errors what each of them means', () => {
  const { storeUnavailable, outcomeUnknown } = ERRORS
  const { description } = openapi.paths['/plants'].get.responses[503]!
  assert.equal(description, `${storeUnavailable.message} Or: ${outcomeUnknown.message}`)
})

test('says which header fields come with each response that may have them', () => {
  const always = Object.entries(openapi.components.headers).filter(([, { required }]) => required)
  const seen = always.map(([name]) => name)
  assert.deepEqual(seen, ['Cache-Control', 'Allow', 'WWW-Authenticate', 'Retry-After'])
})

test('names a server that is right under any path prefix', () => {
  const [{ url }] = programDescription.servers as [{ url: string }]
  for (const folder of ['http://127.0.0.1:3000/', 'https://plants.example/api/v1/']) {
    assert.equal(new URL(url, `${folder}openapi.json`).href, folder)
  }
})

test('says U+0000 so that no generator of clients writes a NUL byte into its source', () => {
  assert.doesNotMatch(JSON.stringify(openapi), /u0000/)
})

const ajv = new Ajv2020()
  .addFormat('int32', { type: 'number', validate: (value) => Math.abs(value) < 2 ** 31 })
  .addFormat('int64', { type: 'number', validate: (value) => Math.abs(value) <= 2 ** 63 })

const FERN = { id: 1, name: 'Fern', tag: 'green' }

const { schemas, parameters } = openapi.components
const { id, limit, after, include } = parameters
const SCHEMAS = { ...schemas, id: id.schema, limit: limit.schema, after: after.schema, include: include.schema }

const ROWS: readonly (readonly [name: keyof typeof SCHEMAS, fits: boolean, ...values: readonly unknown[]])[] = [
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

suite('the schema', () => {
  for (const [name, fits, ...values] of ROWS) {
    for (const value of values) {
      test(`${name} ${fits ? 'takes' : 'refuses'} ${JSON.stringify(value)}`, () => {
        assert.equal(ajv.validate(SCHEMAS[name], value), fits)
      })
    }
  }
})
