import { withDeadline, type MaybePromise } from '../maybe-promise.ts'
import { quote } from '../option-checks.ts'
import { MAX_INT64, MIN_INT64 } from '../plants/int64.ts'
import type { NewPlant } from '../plants/plant.ts'
import { StoreUnavailableError } from '../plants/store.ts'
import { isText, TEXT } from '../plants/text.ts'
import { HttpError } from './errors.ts'
import { JsonObject, type JsonValue } from './json.ts'
import type { HostRequest } from './transport.ts'

/** The type of the option `validate`. */
export type Validate = (plant: NewPlant, context: ValidationContext) => MaybePromise<string | null | undefined>

/** The second argument of {@link Validate}. */
export interface ValidationContext {
  /** The owner of the plant. */
  readonly owner: string
  /** The request that creates the plant. */
  readonly request: HostRequest
}

/** @throws HttpError 40002 that names every member that is wrong, and what was expected of it */
export function parseNewPlant(value: JsonValue): NewPlant {
  if (!(value instanceof JsonObject)) {
    throw new HttpError('notPlant', 'The body must be a JSON object with the members id, name and, if wanted, tag.')
  }

  let id: JsonValue | undefined
  let name: JsonValue | undefined
  let tag: JsonValue | undefined
  const repeated: string[] = []
  for (let member = value.first; member !== undefined; member = member.next) {
    if (member.name === 'id') {
      if (id !== undefined) repeated.push('id')
      id = member.value
    } else if (member.name === 'name') {
      if (name !== undefined) repeated.push('name')
      name = member.value
    } else if (member.name === 'tag') {
      if (tag !== undefined) repeated.push('tag')
      tag = member.value
    }
  }

  if (repeated.length === 0 && typeof id === 'bigint' && isText(name) && (tag === undefined || isText(tag))) {
    return tag === undefined ? { id, name } : { id, name, tag }
  }

  const wrong: string[] = []
  if (typeof id !== 'bigint') wrong.push(`id must be a whole number from ${MIN_INT64} to ${MAX_INT64}`)
  if (!isText(name)) wrong.push(`name must be a string of ${TEXT}`)
  if (tag !== undefined && !isText(tag)) wrong.push(`tag must be absent, or a string of ${TEXT}`)
  for (const member of new Set(repeated)) wrong.push(`${member} must be given only once`)
  throw new HttpError('notPlant', `The body is not a plant: ${wrong.join('; ')}.`)
}

/** Wraps a host's `validate`. The result throws HttpError 40002, or 50300 for a timeout or a StoreUnavailableError. */
export function checkValidate(
  validate: Validate,
  timeoutMs: number,
): (plant: NewPlant, context: ValidationContext) => MaybePromise<void> {
  const createError = (): StoreUnavailableError =>
    new StoreUnavailableError(`validate didn't settle within ${timeoutMs} ms`)

  return (plant, context) => {
    try {
      const result = withDeadline<unknown>(validate(plant, context), timeoutMs, createError)
      return result instanceof Promise ? result.then(requireNoMessage).catch(rethrow) : requireNoMessage(result)
    } catch (thrown) {
      return rethrow(thrown)
    }
  }
}

function requireNoMessage(message: unknown): void {
  if (message === undefined || message === null || message === '') return
  if (typeof message === 'string') throw new HttpError('notPlant', message)
  throw new TypeError(`validate must return a message or nothing, or a promise of either, not ${quote(message)}`)
}

/** Whatever a StoreUnavailableError says about the outcome, the store hasn't been called. */
function rethrow(cause: unknown): never {
  throw cause instanceof StoreUnavailableError ? new HttpError('storeUnavailable', undefined, { cause }) : cause
}
