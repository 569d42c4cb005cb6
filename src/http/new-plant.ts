import { Buffer } from 'node:buffer'
import { isInt64, MAX_INT64, MIN_INT64, PLANT_TEXTS, TEXT_NAMES, type NewPlant, type Plant } from '../plants/plant.ts'
import type { ParsedBody } from './body.ts'
import { HttpError } from './errors.ts'
import { parseJson, type JsonValue } from './json.ts'

type MemberName = keyof NewPlant

const MEMBERS: readonly MemberName[] = ['id', ...TEXT_NAMES]

/**
 * Parses and validates a request body: bytes, or the object that one of the host's parsers has made of them.
 * @throws HttpError 40001 or 40002, whose message says what is wrong with each invalid member
 */
export function parseNewPlant(body: Buffer | ParsedBody): NewPlant {
  const value = Buffer.isBuffer(body) ? parseJson(body) : { members: Object.entries(body) }
  if (typeof value !== 'object' || value === null || !('members' in value)) {
    throw new HttpError('invalidPlant', 'The body must be a JSON object.')
  }
  const plant: Partial<Record<MemberName, JsonValue>> = {}
  const repeated: MemberName[] = []
  for (const [key, member] of value.members) {
    const name = MEMBERS[MEMBERS.indexOf(key as MemberName)]
    if (name === undefined || member === undefined) continue
    if (plant[name] !== undefined && !repeated.includes(name)) repeated.push(name)
    plant[name] = member
  }

  const problems: string[] = []
  checkId(plant.id, problems)
  for (const name of TEXT_NAMES) checkText(name, plant[name], problems)
  for (const name of repeated) problems.push(`${name} is repeated`)
  if (problems.length > 0) throw new HttpError('invalidPlant', `The plant is invalid: ${problems.join('; ')}.`)
  return plant as unknown as NewPlant
}

function checkId(id: JsonValue | undefined, problems: string[]): void {
  if (typeof id === 'bigint' && isInt64(id)) return
  if (id === undefined) problems.push('id is required')
  else if (typeof id !== 'number' && typeof id !== 'bigint') problems.push('id must be a number')
  else if (Number.isNaN(id)) problems.push('id must be an integer')
  else problems.push(`id must be from ${MIN_INT64} to ${MAX_INT64}`)
}

function checkText(name: keyof Plant, text: JsonValue | undefined, problems: string[]): void {
  const { isRequired } = PLANT_TEXTS[name]
  if (typeof text === 'string') {
    if (!text.isWellFormed()) problems.push(`${name} contains a lone surrogate`)
    if (text.includes('\0')) problems.push(`${name} contains U+0000`)
  } else if (text === undefined) {
    if (isRequired) problems.push(`${name} is required`)
  } else {
    problems.push(`${name} must be a string${text === null && !isRequired ? ' or absent, not null' : ''}`)
  }
}
