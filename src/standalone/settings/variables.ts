import { MAX_TIMER_MS } from '../../option-checks.ts'
import { INVISIBLE_CHARACTERS, LEADING_OR_TRAILING_STRAY } from '../../plants/stray-characters.ts'

const PREFIX = 'PLANT_STORE_'
/** Variables that Kubernetes makes for a service called `plant-store` begin like our settings do. */
const SERVICE_LINK = /_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/
/** The value of such a variable whose name could also be that of a setting. */
const SERVICE_URL = /^(?:tcp|udp|sctp):\/\//

/** A setting is wrong, or what it names cannot be had now. Names the variable and what it takes; quotes nothing. */
export class SettingError extends Error {
  static {
    this.prototype.name = 'SettingError'
  }

  /** The exit status of a program that ends because of it: 1 if waiting may help, else 2. */
  readonly exitStatus: 1 | 2

  constructor(variable: string, problem: string, exitStatus: 1 | 2 = 2) {
    super(`${variable} ${problem}`)
    this.exitStatus = exitStatus
  }
}

export interface Variable<T> {
  readonly name: string
  readonly defaultValue: string | undefined
  readonly expects: string
  readonly parse: (value: string) => T
}

/**
 * Characters that editors, env files with CRLF line endings and web pages leave in a value, and the beginning of a comment,
 * which Docker and systemd read as part of the value. Node decodes bytes that aren't UTF-8 as U+FFFD, so two different
 * paths or hosts could become one.
 */
const STRAY_CHARACTER = new RegExp(
  String.raw`[\p{Cc}\u2028\u2029\ufffd]|${INVISIBLE_CHARACTERS}|\s#|${LEADING_OR_TRAILING_STRAY}`,
  'u',
)

/** @param parseValue gives undefined for what the variable does not take */
function createVariable<T>(
  name: string,
  defaultValue: string | undefined,
  expects: string,
  parseValue: (value: string) => T | undefined,
) {
  function parse(value: string): T {
    const [stray] = STRAY_CHARACTER.exec(value) ?? []
    if (stray !== undefined) {
      throw new SettingError(name, `takes ${expects}; remove ${escapeText(stray)} from its value`)
    }
    const parsed = parseValue(value)
    if (parsed === undefined) throw new SettingError(name, `takes ${expects}`)
    return parsed
  }
  return { name, defaultValue, expects, parse }
}

/** Writes a text in double quotes, in printable ASCII. */
function escapeText(text: string): string {
  return JSON.stringify(text).replace(/[\x7f-\uffff]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

export function text<P extends string | undefined>(
  name: string,
  defaultValue: P,
  expects: string,
  isValid: (value: string) => boolean,
): Variable<string | P> {
  return createVariable(name, defaultValue, expects, (value) => (isValid(value) ? value : undefined))
}

/** Its default bounds are those of a time in milliseconds. */
export function integer<P extends number | undefined>(
  name: string,
  defaultValue: P,
  description: string,
  min = 1,
  max: number = MAX_TIMER_MS,
): Variable<number | P> {
  return createVariable(
    name,
    defaultValue?.toString(),
    `a whole number from ${min} to ${max}: ${description}`,
    (value) => {
      const number = Number(value)
      return /^(?:0|[1-9][0-9]*)$/.test(value) && number >= min && number <= max ? number : undefined
    },
  )
}

export function permissions(name: string, defaultValue: string, description: string): Variable<number> {
  return createVariable(name, defaultValue, `permissions in octal such as 660: ${description}`, (value) => {
    return /^[0-7]{3}$/.test(value) ? parseInt(value, 8) : undefined
  })
}

export function flag(name: string, defaultValue: '0' | '1', description: string): Variable<boolean> {
  return createVariable(name, defaultValue, `1 or 0: ${description}`, (value) =>
    /^[01]$/.test(value) ? value === '1' : undefined,
  )
}

/** The origins whose pages may use the service; `*` stands for all. */
export type Origins = ReadonlySet<string> | '*'

export function originList(name: string): Variable<Origins | undefined> {
  const expects = 'origins such as https://app.example, separated by commas, or *: whose pages may use the service'
  const list = createVariable<Origins>(name, undefined, expects, (value) => {
    const origins = value.split(',').map((origin) => origin.trim())
    if (value === '*') return '*'
    return origins.every(isOrigin) ? new Set(origins) : undefined
  })
  return { ...list, parse: (value) => list.parse(value.trim()) }
}

/** Whether a text is an origin as browsers write it: in lower case, without the default port and without a path. */
function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, host } = new URL(text)
  return host !== '' && !host.includes('*') && text === `${protocol}//${host}`
}

export function removeServiceLinks(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const isNotServiceLink = ([name, value]: [string, string | undefined]): boolean =>
    !SERVICE_LINK.test(name) && !(name.endsWith('_PORT') && SERVICE_URL.test(String(value)))
  return Object.fromEntries(Object.entries(environment).filter(isNotServiceLink))
}

/**
 * A misspelled PLANT_STORE_TOKENS must never start a service with a demo token. If an env file begins with a byte-order
 * mark, that mark becomes part of the first variable's name.
 * @throws SettingError
 */
export function checkVariableNames(environment: NodeJS.ProcessEnv, knownNames: readonly string[]): void {
  for (const name of Object.keys(environment)) {
    const visibleName = name.replace(/[^\x21-\x7e]/g, '')
    const hasPrefix = visibleName.toUpperCase().startsWith(PREFIX)
    if (knownNames.includes(name) || !(hasPrefix || knownNames.includes(visibleName))) continue
    if (visibleName !== name)
      throw new SettingError(visibleName, `has invisible characters in its name, ${escapeText(name)}`)
    throw new SettingError(name, `is no setting; the nearest one is ${findNearestName(name, knownNames)}`)
  }
}

function findNearestName(name: string, knownNames: readonly string[]): string {
  const distances = knownNames.map((other) =>
    computeEditDistance(removePrefix(name.toUpperCase()), removePrefix(other)),
  )
  return knownNames[distances.indexOf(Math.min(...distances))]!
}

/** PLANT_STORE_PORT is PORT with our prefix. */
const removePrefix = (name: string): string => (name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name)

/** How many characters must be inserted, removed or replaced (Levenshtein). Takes the product of the lengths. */
function computeEditDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (const [i, char] of Array.from(a).entries()) {
    const next = [i + 1]
    for (const [j, other] of Array.from(b).entries()) {
      next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (char === other ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]!
}
