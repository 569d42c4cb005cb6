import { MAX_INT64, MIN_INT64 } from '../plants/int64.ts'
import type { NewPlant } from '../plants/plant.ts'
import { isText, TEXT } from '../plants/text.ts'
import { HttpError } from './errors.ts'
import { JsonObject, type JsonValue } from './json.ts'

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
