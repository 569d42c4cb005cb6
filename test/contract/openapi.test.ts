import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { openapi } from '../../src/openapi/openapi.ts'
import { post, sendRequest, servePlants } from '../support/service.ts'
import { authenticate, CONTRACT_CASES } from './contract-cases.ts'

const ajv = new Ajv2020({ strict: false })
  .addFormat('int32', { type: 'number', validate: (value) => Math.abs(value) < 2 ** 31 })
  .addFormat('int64', { type: 'number', validate: (value) => Math.abs(value) <= 2 ** 63 })
  .addSchema(openapi, 'openapi')

/** Header fields that the description doesn't mention, because every response can have them. */
const COMMON_HEADERS = ['content-length', 'content-type', 'cache-control']

interface Response {
  headers?: object
  content?: { 'application/json': { examples?: Record<string, { value: { error: number } }> } }
}
type Operations = Readonly<Record<string, { responses: Record<string, Response | { $ref: string }> }>>

/** Returns the JSON pointer of the response that the description promises, and the response. */
function findResponse(method: string, target: string, status: number): [pointer: string, response: Response] {
  const segments = target
    .replace(/^http:\/\/[^/]+/, '')
    .split('?')[0]!
    .split('/')
  const path = segments.length > 2 ? '/plants/{id}' : '/plants'
  const item = openapi.paths[path] as Operations
  // Every operation of a path describes the response to unsupported methods.
  const name = method.toLowerCase() in item ? method.toLowerCase() : Object.keys(item)[0]!
  const response = item[name]!.responses[status]
  assert.ok(response !== undefined, `${method} ${target} → ${status} isn't described`)
  if (!('$ref' in response)) return [`/paths/${path.replaceAll('/', '~1')}/${name}/responses/${status}`, response]
  const pointer = response.$ref.slice(1)
  const responses = openapi.components.responses as Record<string, Response>
  return [pointer, responses[pointer.split('/').at(-1)!]!]
}

suite('every response matches the OpenAPI description:', () => {
  for (const row of Object.values(CONTRACT_CASES).flat()) {
    const request = row.request('owner')
    // A path that isn't a resource, a malformed escape and OPTIONS belong to no operation.
    if (row.status === 404 || request.method === 'OPTIONS' || /%(?:z|E0)/.test(request.path)) continue
    test(row.name, async (t) => {
      const server = await servePlants(t, { authenticate })
      for (const body of row.existingPlants) await sendRequest(server, post('owner', body))
      const { status, headers, body } = await sendRequest(server, request)
      const [pointer, response] = findResponse(request.method, request.path, status)

      const described = Object.keys(response.headers ?? {}).map((name) => name.toLowerCase())
      for (const name of Object.keys(headers)) assert.ok([...COMMON_HEADERS, ...described].includes(name), name)
      if (response.content === undefined) return assert.equal(body, '')
      const schema = `openapi#${pointer}/content/application~1json/schema`
      const validate = ajv.getSchema(schema) as ValidateFunction
      assert.ok(validate(JSON.parse(body)), ajv.errorsText(validate.errors))
      const examples = Object.values(response.content['application/json'].examples ?? {})
      const codes = examples.map(({ value }) => value.error)
      if (row.error !== undefined) assert.ok(codes.includes(row.error), `${row.error} has no example`)
    })
  }
})
