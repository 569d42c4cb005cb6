import { Buffer } from 'node:buffer'
import { isInt64, MAX_INT64, MIN_INT64, type NewPlant } from '../plants/plant.ts'
import type { ParsedBody } from './body.ts'
import { HttpError } from './errors.ts'
import { parseJson, type JsonObject, type JsonValue } from './json.ts'

type MemberName = keyof NewPlant

const MEMBERS: readonly MemberName[] = ['id', 'name', 'tag']
const TEXTS = ['name', 'tag'] as const

/** V8 keeps a whole body in memory for as long as any part of it exists, so the texts of larger bodies are copied. */
const MAX_RETAINED_BYTES = 1024

/**
 * Parses and validates a request body: bytes, or the object that one of the host's parsers has made of them.
 * @throws HttpError 40001 or 40002, whose message says what is wrong with each invalid member
 */
export function parseNewPlant(body: Buffer | ParsedBody): NewPlant {
  const object = Buffer.isBuffer(body) ? parseJson(body) : toJsonObject(body)
  if (typeof object !== 'object' || object === null || !('members' in object)) {
    throw new HttpError('invalidPlant', 'The body must be a JSON object.')
  }
  const plant: Partial<Record<MemberName, JsonValue>> = {}
  const repeated = new Set<MemberName>()
  for (const { name, value } of object.members) {
    const member = MEMBERS[MEMBERS.indexOf(name as MemberName)]
    if (member === undefined) continue
    if (plant[member] !== undefined) repeated.add(member)
    plant[member] = value
  }

  const problems: string[] = []
  checkId(plant.id, problems)
  for (const name of TEXTS) checkText(name, plant[name], problems)
  for (const name of repeated) problems.push(`${name} is repeated`)
  if (problems.length > 0) throw new HttpError('invalidPlant', `The plant is invalid: ${problems.join('; ')}.`)

  if (Buffer.isBuffer(body) && body.length > MAX_RETAINED_BYTES) {
    for (const name of TEXTS) {
      if (plant[name] !== undefined) plant[name] = Buffer.from(plant[name] as string).toString()
    }
  }
  return plant as unknown as NewPlant
}

const toJsonObject = (body: ParsedBody): JsonObject => ({
  members: MEMBERS.filter((name) => body[name] !== undefined).map((name) => ({
    name,
    value: body[name] as JsonValue,
  })),
})

function checkId(id: JsonValue | undefined, problems: string[]): void {
  if (typeof id === 'bigint' && isInt64(id)) return
  if (id === undefined) problems.push('id is required')
  else if (typeof id !== 'number' && typeof id !== 'bigint') problems.push('id must be a number')
  else if (Number.isNaN(id)) problems.push('id must be an integer')
  else problems.push(`id must be from ${MIN_INT64} to ${MAX_INT64}`)
}

function checkText(name: MemberName, text: JsonValue | undefined, problems: string[]): void {
  if (typeof text === 'string') {
    if (!text.isWellFormed()) problems.push(`${name} contains a lone surrogate`)
    if (text.includes('\0')) problems.push(`${name} contains U+0000`)
  } else if (text === undefined) {
    if (name === 'name') problems.push(`${name} is required`)
  } else if (text === null && name === 'tag') {
    problems.push(`${name} must be a string or absent, not null`)
  } else {
    problems.push(`${name} must be a string`)
  }
}
