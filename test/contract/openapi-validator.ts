import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { openapi } from '../../src/openapi/openapi.ts'

/** An answer as it arrived. */
export interface ReceivedAnswer {
  readonly method: string
  /** The request target, with its query. */
  readonly path: string
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

interface Description {
  /** The operations by method, and the parameters that they share. */
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly headers: Readonly<Record<string, { readonly required: boolean }>> }
}

interface Operation {
  readonly responses?: Readonly<Record<string, Response>>
}

interface Response {
  readonly headers?: Readonly<Record<string, unknown>>
  readonly content?: {
    readonly 'application/json': { readonly examples?: Readonly<Record<string, Example>> }
  }
}

interface Example {
  readonly value: { readonly error: number }
}

/** Fields that any answer may have. */
const GENERAL = new Set(['connection', 'content-length', 'date', 'keep-alive', 'transfer-encoding'])

const { paths, components } = openapi as unknown as Description

const ajv = new Ajv2020({ allErrors: true })
  .addFormat('int32', { type: 'number', validate: (value) => Math.abs(value) < 2 ** 31 })
  .addFormat('int64', { type: 'number', validate: (value) => Math.abs(value) <= 2 ** 63 })
  .addVocabulary(Object.keys(openapi))
  .addSchema(openapi, 'openapi')

/** Asserts that the interface description has such an answer to such a request. */
export function assertDescribed(answer: ReceivedAnswer): void {
  const { method, status, headers, body } = answer
  const pointer = findResponse(answer)
  const response = resolve(pointer) as Response
  const place = `${method} ${answer.path} → ${status} (${pointer})`

  const described = Object.keys(response.headers ?? {})
  for (const name of described) {
    if (components.headers[name]!.required) assert.ok(name.toLowerCase() in headers, `${place} lacks ${name}`)
  }
  const names = new Set(described.map((name) => name.toLowerCase()))
  for (const name of Object.keys(headers)) {
    const isDescribed = GENERAL.has(name) || names.has(name) || name === 'content-type'
    assert.ok(isDescribed, `${place} has the field ${name}, which is not described`)
  }

  if (response.content === undefined) return assert.equal(body, '', `${place} has a body`)
  assert.equal(headers['content-type'], 'application/json', place)
  const value = JSON.parse(body) as { error: number }
  const validate = ajv.getSchema(`openapi#${pointer}/content/application~1json/schema`) as ValidateFunction
  assert.ok(validate(value), `${place}: ${ajv.errorsText(validate.errors)} in ${body}`)
  if (status >= 400) {
    const examples = Object.values(response.content['application/json'].examples ?? {})
    const codes = examples.map((example) => example.value.error)
    assert.ok(codes.includes(value.error), `${place}: ${value.error} is not described`)
  }
}

/** The JSON pointer to the response that fits best. */
function findResponse({ method, path, status }: ReceivedAnswer): string {
  const template = Object.keys(paths).find((template) => toPattern(template).test(decode(path))) ?? '/plants'
  const operations = paths[template]!
  const has = (operation: string): boolean => String(status) in (operations[operation]?.responses ?? {})
  // A method that the resource lacks is refused as any other may be, until it comes to the method itself.
  const others = Object.keys(operations)
  const operation = method.toLowerCase() in operations ? method.toLowerCase() : (others.find(has) ?? 'options')
  const response = has(operation) ? String(status) : 'default'
  return ['', 'paths', template, operation, 'responses', response]
    .map((segment) => segment.replaceAll('~', '~0').replaceAll('/', '~1'))
    .join('/')
}

function toPattern(template: string): RegExp {
  return new RegExp(`^${template.replaceAll('.', '\\.').replace(/{\w+}/, '[^/]+')}$`)
}

/** The path of a request target, with the escapes decoded that can be. */
function decode(target: string): string {
  const path = target.replace(/^\w+:\/\/[^/]*/, '').replace(/\?.*$/s, '')
  return path.replace(/%[2-7][0-9a-f]/gi, (escape) => (/%2f/i.test(escape) ? escape : decodeURIComponent(escape)))
}

function resolve(pointer: string): unknown {
  let value: unknown = openapi
  for (const segment of pointer.split('/').slice(1)) {
    value = (value as Record<string, unknown>)[segment.replaceAll('~1', '/').replaceAll('~0', '~')]
  }
  return value
}
