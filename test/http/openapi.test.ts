import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { ERRORS } from '../../src/http/errors.ts'
import { openapi } from '../../src/openapi/openapi.ts'
import { OPERATIONS } from '../../src/operations.ts'

interface Operation {
  operationId: string
  parameters?: { $ref: string }[]
  responses: object
}
interface Response {
  description: string
  headers: object
  content: { 'application/json': { examples: Record<string, object> } }
}
type Parameters = Readonly<Record<'id' | 'limit' | 'after' | 'include', { schema: object }>>

const paths = openapi.paths as Readonly<Record<string, Readonly<Record<string, Operation>>>>
const responses = openapi.components.responses as Readonly<Record<string, Response>>
const operations = Object.entries(paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
)

suite('the OpenAPI description', () => {
  test('describes each operation', () => {
    const described = operations.map(({ path, method }) => `${method.toUpperCase()} ${path}`)
    const existing = Object.entries(OPERATIONS).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    )
    assert.deepEqual(described, existing)
  })

  test('declares the path parameter in each operation, where tools look for it', () => {
    for (const { path, operation } of operations) {
      const isInPath = operation.parameters?.some(({ $ref }) => $ref.endsWith('/id')) ?? false
      assert.equal(isInPath, path.includes('{id}'), operation.operationId)
    }
  })

  test('refers to each shared error response, and to nothing that is missing', () => {
    const references = new Set(JSON.stringify(openapi).match(/(?<="\$ref":"#\/components\/)[^"]+/g))
    for (const reference of references) {
      const [kind, name] = reference.split('/') as [keyof typeof openapi.components, string]
      assert.ok(name in (openapi.components[kind] as object), reference)
    }
    for (const name of Object.keys(responses)) assert.ok(references.has(`responses/${name}`), name)
  })

  const STATUSES: readonly (readonly [path: keyof typeof openapi.paths, method: string, statuses: string])[] = [
    ['/plants', 'get', '200 400 401 404 405 408 431 500 501 503'],
    ['/plants', 'head', '200 400 401 404 405 408 431 500 501 503'],
    ['/plants', 'post', '200 400 401 403 404 405 408 409 413 415 431 500 501 503'],
    ['/plants/{id}', 'delete', '204 400 401 403 404 405 408 431 500 501 503'],
  ]
  for (const [path, method, statuses] of STATUSES) {
    test(`lists the statuses of ${method} ${path}`, () => {
      assert.equal(Object.keys(paths[path]![method]!.responses).join(' '), statuses)
    })
  }

  test('has the message, an example and the header fields of each error', () => {
    for (const [name, definition] of Object.entries(ERRORS)) {
      const response = responses[`Error${Math.trunc(definition.error / 100)}`]!
      const { error, message } = definition
      assert.ok(response.description.split(' Or: ').includes(message), name)
      assert.deepEqual(response.content['application/json'].examples[name], { value: { error, message } })
      for (const field of Object.keys('headers' in definition ? definition.headers : {})) {
        assert.ok(field in response.headers, field)
      }
    }
    assert.deepEqual(responses['Error405']!.headers, { Allow: { $ref: '#/components/headers/Allow' } })
  })

  test('does not describe Cache-Control, which generated clients would return instead of Link', () => {
    assert.doesNotMatch(JSON.stringify(openapi), /cache-control/i)
  })

  test('avoids \\u0000, which client generators turn into NUL bytes in source code', () => {
    assert.doesNotMatch(JSON.stringify(openapi), /u0000/)
  })
})

const ajv = new Ajv2020()
  .addFormat('int32', { type: 'number', validate: (value) => Math.abs(value) < 2 ** 31 })
  .addFormat('int64', { type: 'number', validate: (value) => Math.abs(value) <= 2 ** 63 })

const FERN = { id: 1, name: 'Fern', tag: 'green' }

const schemas = openapi.components.schemas as Readonly<Record<'Plant' | 'ListedPlant' | 'NewPlant' | 'Error', object>>
const { id, limit, after, include } = openapi.components.parameters as Parameters
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
