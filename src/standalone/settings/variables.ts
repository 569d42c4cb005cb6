import { MAX_TIMER_MS } from '../../legacy/option-checks.ts'
import { INVISIBLE_CHARACTERS, LEADING_OR_TRAILING_STRAY } from '../../legacy/plants/stray-characters.ts'

const PREFIX = 'PLANT_STORE_'
/**
 * Matches variables that Kubernetes sets for a service named `plant-store`. They have the same prefix as our settings.
 */
const SERVICE_LINK = /_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$/
/**
 * Matches the values of Kubernetes variables whose names end in `_PORT`. Checking the names isn't enough, because our
 * own settings may have such names, too.
 */
const SERVICE_URL = /^(?:tcp|udp|sctp):\/\//

/**
 * Thrown when a setting is invalid, or when the resource that it refers to isn't available. The message names the
 * variable and says what its value must be, but never contains the value, which might be secret.
 */
export class SettingError extends Error {
  static {
    this.prototype.name = 'SettingError'
  }

  /** The exit status of the process: 1 if the same settings might work later, otherwise 2. */
  readonly exitStatus: 1 | 2

  constructor(message: string, exitStatus: 1 | 2 = 2) {
    super(message)
    this.exitStatus = exitStatus
  }
}

export interface Variable<T> {
  readonly name: string
  readonly defaultValue: string | undefined
  /** What the variable sets, for `--help`. */
  readonly description: string
  /** The valid values, worded to complete "must be …" in an error message. */
  readonly expects: string
  /** @throws SettingError if the value is invalid */
  readonly parse: (value: string) => T
}

/**
 * Characters that get into a value by accident: from an editor, a web page, an env file with CRLF line endings, or a
 * comment after the value, which Docker and systemd read as part of it. Node decodes bytes that aren't UTF-8 as U+FFFD,
 * which could make two different paths or hosts identical.
 */
const STRAY_CHARACTER = new RegExp(
  String.raw`[\p{Cc}\u2028\u2029\ufffd]|${INVISIBLE_CHARACTERS}|\s#|${LEADING_OR_TRAILING_STRAY}`,
  'u',
)

/** @param parseValue returns undefined for an invalid value */
function createVariable<T>(
  name: string,
  defaultValue: string | undefined,
  description: string,
  expects: string,
  parseValue: (value: string) => T | undefined,
): Variable<T> {
  function parse(value: string): T {
    const [stray] = STRAY_CHARACTER.exec(value) ?? []
    if (stray !== undefined) {
      throw new SettingError(`${name} must be ${expects}; remove ${escapeText(stray)} from its value`)
    }
    const parsed = parseValue(value)
    if (parsed === undefined) throw new SettingError(`${name} must be ${expects}`)
    return parsed
  }
  return { name, defaultValue, description, expects, parse }
}

/** Formats a string in double quotes, with escapes for everything but printable ASCII. */
function escapeText(text: string): string {
  return JSON.stringify(text).replace(/[\x7f-\uffff]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

export function text<P extends string | undefined>(
  name: string,
  defaultValue: P,
  description: string,
  expects: string,
  isValid: (value: string) => boolean,
): Variable<string | P> {
  return createVariable<string>(name, defaultValue, description, expects, (value) =>
    isValid(value) ? value : undefined,
  )
}

/** Defines an integer setting. The default bounds are those of a timeout in milliseconds. */
export function integer<P extends number | undefined>(
  name: string,
  defaultValue: P,
  description: string,
  min = 1,
  max: number = MAX_TIMER_MS,
): Variable<number | P> {
  return createVariable<number>(
    name,
    defaultValue?.toString(),
    description,
    `an integer from ${min} to ${max}`,
    (value) => {
      const number = Number(value)
      return /^(?:0|[1-9][0-9]*)$/.test(value) && number >= min && number <= max ? number : undefined
    },
  )
}

export function permissions(name: string, defaultValue: string, description: string): Variable<number> {
  return createVariable(name, defaultValue, description, 'three octal digits such as 660', (value) => {
    return /^[0-7]{3}$/.test(value) ? parseInt(value, 8) : undefined
  })
}

export function flag(name: string, defaultValue: '0' | '1', description: string): Variable<boolean> {
  return createVariable(name, defaultValue, description, '1 or 0', (value) =>
    /^[01]$/.test(value) ? value === '1' : undefined,
  )
}

/** The origins whose pages can call the service with CORS; `*` means all origins. */
export type Origins = ReadonlySet<string> | '*'

export function originList(name: string): Variable<Origins | undefined> {
  const description = 'the origins whose web pages can call the API with CORS'
  const expects = 'comma-separated origins such as https://app.example, or *'
  const list = createVariable<Origins>(name, undefined, description, expects, (value) => {
    const origins = value.split(',').map((origin) => origin.trim())
    if (value === '*') return '*'
    return origins.every(isOrigin) ? new Set(origins) : undefined
  })
  return { ...list, parse: (value) => list.parse(value.trim()) }
}

/** Returns whether a string is an origin as browsers send it: in lower case, without the default port or a path. */
function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, host } = new URL(text)
  return host !== '' && !host.includes('*') && text === `${protocol}//${host}`
}

/** Removes the variables that Kubernetes sets for services with names such as `plant-store` or `plant-store-admin`. */
export function removeServiceLinks(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const isNotServiceLink = ([name, value]: [string, string | undefined]): boolean =>
    !SERVICE_LINK.test(name) && !(name.endsWith('_PORT') && SERVICE_URL.test(String(value)))
  return Object.fromEntries(Object.entries(environment).filter(isNotServiceLink))
}

/**
 * Rejects unknown variables with our prefix, because a misspelled PLANT_STORE_TOKENS must never start a server with a
 * demo token. Also rejects invisible characters in names: the byte-order mark of an env file becomes part of the first
 * name in the file.
 * @throws SettingError if a name is invalid
 */
export function checkVariableNames(environment: NodeJS.ProcessEnv, knownNames: readonly string[]): void {
  for (const name of Object.keys(environment)) {
    const visibleName = name.replace(/[^\x21-\x7e]/g, '')
    const hasPrefix = visibleName.toUpperCase().startsWith(PREFIX)
    if (knownNames.includes(name) || !(hasPrefix || knownNames.includes(visibleName))) continue
    if (visibleName !== name)
      throw new SettingError(`the name of ${visibleName} contains invisible characters: ${escapeText(name)}`)
    throw new SettingError(`unknown setting ${name}; did you mean ${findNearestName(name, knownNames)}?`)
  }
}

function findNearestName(name: string, knownNames: readonly string[]): string {
  const distances = knownNames.map((other) =>
    computeEditDistance(removePrefix(name.toUpperCase()), removePrefix(other)),
  )
  return knownNames[distances.indexOf(Math.min(...distances))]!
}

/** Removes our prefix, so that PORT is the name closest to PLANT_STORE_PORT. */
const removePrefix = (name: string): string => (name.startsWith(PREFIX) ? name.slice(PREFIX.length) : name)

/** Returns the Levenshtein distance between two strings, in time proportional to the product of their lengths. */
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
