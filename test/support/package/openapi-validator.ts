import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { OperationObject } from '../../../src/openapi/description.ts'
import { programDescription } from '../../../src/standalone/paths/program-description.ts'

/** A response and its request. */
export interface ReceivedResponse {
  readonly method: string
  /** The request target, including the query. */
  readonly path: string
  readonly status: number
  /** Header values by lowercase name. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Headers that any response may have. */
const COMMON_HEADERS = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding'])

const { paths, components } = programDescription

/** The operations of the OpenAPI document, by path and lowercase method. */
export const OPERATIONS: ReadonlyMap<string, ReadonlyMap<string, OperationObject>> = new Map(
  Object.entries(paths).map(([path, item]) => [path, new Map(Object.entries<OperationObject>(item))]),
)

const ajv = new Ajv2020({ allErrors: true })
  .addFormat('int32', { type: 'number', validate: (value) => Math.abs(value) < 2 ** 31 })
  .addFormat('int64', { type: 'number', validate: (value) => Math.abs(value) <= 2 ** 63 })
  .addVocabulary(Object.keys(programDescription))
  .addSchema(programDescription, 'openapi')

/** Asserts that the OpenAPI document describes the response. */
export function assertMatchesOpenApi(received: ReceivedResponse): void {
  const { method, status, headers, body } = received
  const [path, operation] = findOperation(received)
  const response = OPERATIONS.get(path)!.get(operation)!.responses[status]!
  const pointer = `/paths/${path.replaceAll('/', '~1')}/${operation}/responses/${status}`
  const location = `${method} ${received.path} → ${status} (${pointer})`

  const names = new Set<string>()
  for (const [name, definition] of Object.entries(response.headers ?? {})) {
    const { required } = '$ref' in definition ? components.headers[name]! : definition
    if (required) assert.ok(name.toLowerCase() in headers, `${location} doesn't have ${name}`)
    names.add(name.toLowerCase())
  }
  for (const name of Object.keys(headers)) {
    const isDescribed = COMMON_HEADERS.has(name) || names.has(name) || name === 'content-type'
    assert.ok(isDescribed, `${location} has the header ${name}, which isn't described`)
  }

  if (response.content === undefined) return assert.equal(body, '', `${location} has a body`)
  assert.equal(headers['content-type'], 'application/json', location)
  const value = JSON.parse(body) as { error: number }
  const validate = ajv.getSchema(`openapi#${pointer}/content/application~1json/schema`) as ValidateFunction
  assert.ok(validate(value), `${location}: ${ajv.errorsText(validate.errors)} in ${body}`)
  if (status >= 400) {
    const examples = Object.values(response.content['application/json'].examples ?? {})
    const codes = examples.map((example) => (example.value as { error: number }).error)
    assert.ok(codes.includes(value.error), `${location}: the error code ${value.error} isn't described`)
  }
}

/** Returns the path and the method of the operation that describes a response. */
export function findOperation({
  method,
  path,
  status,
}: Pick<ReceivedResponse, 'method' | 'path' | 'status'>): [path: string, method: string] {
  const template = [...OPERATIONS.keys()].find((template) => toPattern(template).test(decodePath(path))) ?? '/plants'
  const operations = OPERATIONS.get(template)!
  const name = method.toLowerCase()
  // Every operation of a resource describes the response to unsupported methods.
  const candidates = operations.has(name) ? [name] : [...operations.keys()]
  const operation = candidates.find((candidate) => status in operations.get(candidate)!.responses)
  assert.ok(operation !== undefined, `${method} ${path} → ${status} isn't described`)
  return [template, operation]
}

function toPattern(template: string): RegExp {
  return new RegExp(`^${template.replaceAll('.', '\\.').replace(/{\w+}/, '[^/]+')}$`)
}

/** Returns the path of a request target. Decodes percent-escapes of ASCII characters except the slash. */
function decodePath(target: string): string {
  const path = target.replace(/^\w+:\/\/[^/]*/, '').replace(/\?.*$/s, '')
  return path.replace(/%[2-7][0-9a-f]/gi, (escape) => (/%2f/i.test(escape) ? escape : decodeURIComponent(escape)))
}
