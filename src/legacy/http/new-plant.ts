import { Buffer } from 'node:buffer'
import { NativePromise, withDeadline, type MaybePromise } from '../maybe-promise.ts'
import { formatValue } from '../option-checks.ts'
import { MAX_INT64, MIN_INT64 } from '../plants/int64.ts'
import { createPlant, type NewPlant } from '../plants/plant.ts'
import { StoreUnavailableError } from '../plants/store.ts'
import { isValidText } from '../plants/text.ts'
import { HttpError } from './errors.ts'
import { JsonObject, type JsonValue } from './json.ts'
import type { HostRequest } from './transport.ts'

/** The second argument of {@link Validate}. */
export interface ValidationContext {
  /** The owner of the plant. */
  readonly owner: string
  /** The request that creates the plant. */
  readonly request: HostRequest
}

/**
 * The name and the tag are copied if the body exceeds twice their combined length by more than this many bytes.
 * Otherwise, a store that keeps them would keep the whole body in memory.
 */
const MAX_OVERHEAD_BYTES = 200

/**
 * Validates the JSON value of a request body and converts it to a plant.
 * @param bodyLength the length of the JSON text in bytes
 * @throws HttpError 40002, whose message says what is wrong with each invalid member
 */
export function parseNewPlant(value: JsonValue, bodyLength: number): NewPlant {
  if (!(value instanceof JsonObject)) {
    throw new HttpError('invalidPlant', 'The body must be a JSON object.')
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

  if (repeated.length === 0 && typeof id === 'bigint' && isValidText(name) && (tag === undefined || isValidText(tag))) {
    const textLength = name.length + (tag?.length ?? 0)
    if (bodyLength > 2 * textLength + MAX_OVERHEAD_BYTES) return copyTexts(id, name, tag)
    return createPlant(id, name, tag)
  }

  const problems = [
    ...findIdProblems(id),
    ...(name === undefined ? ['name is required'] : findTextProblems('name', name)),
    ...(tag === undefined ? [] : findTextProblems('tag', tag)),
    ...Array.from(new Set(repeated), (member) => `${member} is repeated`),
  ]
  throw new HttpError('invalidPlant', `The plant is invalid: ${problems.join('; ')}.`)
}

function findIdProblems(id: JsonValue | undefined): string[] {
  if (typeof id === 'bigint') return []
  if (id === undefined) return ['id is required']
  if (typeof id !== 'number') return ['id must be a number']
  // `parseJson` converts every int64 to a bigint, so a double in that range isn't an integer.
  return [Math.abs(id) < 2 ** 63 ? 'id must be an integer' : `id must be from ${MIN_INT64} to ${MAX_INT64}`]
}

function findTextProblems(name: string, text: JsonValue): string[] {
  if (text === null && name === 'tag') return ['tag must be a string or absent, not null']
  if (typeof text !== 'string') return [`${name} must be a string`]
  return [
    ...(text.isWellFormed() ? [] : [`${name} contains a lone surrogate`]),
    ...(text.includes('\0') ? [`${name} contains U+0000`] : []),
  ]
}

/**
 * Wraps the host's `validate` in a function that throws HttpError 40002 if `validate` returns a message, and 50300 if
 * it takes longer than `timeoutMs` or throws a StoreUnavailableError.
 */
export function createPlantValidator(
  validate: (plant: NewPlant, context: ValidationContext) => unknown,
  timeoutMs: number,
): (plant: NewPlant, context: ValidationContext) => MaybePromise<void> {
  const createError = (): StoreUnavailableError =>
    new StoreUnavailableError(`validate did not settle within ${timeoutMs} ms`)

  return (plant, context) => {
    try {
      const result = withDeadline(validate(plant, context), timeoutMs, createError)
      return result instanceof NativePromise ? result.then(requireNoMessage).catch(rethrow) : requireNoMessage(result)
    } catch (error) {
      return rethrow(error)
    }
  }
}

function requireNoMessage(message: unknown): void {
  if (message === undefined || message === null || message === '') return
  if (typeof message === 'string') throw new HttpError('invalidPlant', message)
  throw new TypeError(`validate must return a message or nothing, or a promise of either, not ${formatValue(message)}`)
}

/** The store hasn't been called yet, so `isOutcomeUnknown` of a StoreUnavailableError is ignored. */
function rethrow(cause: unknown): never {
  throw cause instanceof StoreUnavailableError ? new HttpError('storeUnavailable', undefined, undefined, cause) : cause
}

/**
 * Copies the name and tag, because V8 would keep the whole body in memory for as long as any substring of it exists.
 */
function copyTexts(id: bigint, name: string, tag: string | undefined): NewPlant {
  const copy = (text: string): string => Buffer.from(text).toString()
  return createPlant(id, copy(name), tag === undefined ? undefined : copy(tag))
}
