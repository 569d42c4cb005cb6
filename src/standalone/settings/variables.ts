const PREFIX = 'PLANT_STORE_'

/**
 * Kubernetes sets these variables for each service, and for a service called `plant-store` they begin with our prefix.
 * The names of some settings also end in `_PORT`, but only the variable of a service contains a URL.
 */
const SERVICE_VARIABLE = /_(?:SERVICE_(?:HOST|PORT\w*)|PORT_\d+_\w+)=|_PORT=\w+:\/\//

/**
 * Thrown if a setting is invalid, or if what it refers to isn't available. The message names the variable and the
 * values that it accepts, but never contains the value, which might be secret.
 */
export class SettingError extends Error {
  override readonly name = 'SettingError'
  /** The exit status of the process: 1 if the same settings might work later, otherwise 2. */
  readonly exitStatus: 1 | 2

  constructor(message: string, exitStatus: 1 | 2 = 2) {
    super(message)
    this.exitStatus = exitStatus
  }
}

export interface Variable<T, Default extends string | undefined = string | undefined> {
  readonly name: string
  readonly defaultValue: Default
  /** What the variable sets, for `--help`. */
  readonly description: string
  /** The valid values, worded to complete "must be …" in an error message. */
  readonly expects: string
  /** Returns undefined if the value is invalid. */
  readonly parse: (value: string) => T | undefined
}

export function text<D extends string | undefined>(
  name: string,
  defaultValue: D,
  description: string,
  expects: string,
  isValid: (value: string) => boolean = Boolean,
): Variable<string, D> {
  // White space at the end of a value is easy to add by accident, and hard to see.
  const parse = (value: string): string | undefined =>
    value === value.trim() && !/\p{Cc}/u.test(value) && isValid(value) ? value : undefined
  return { name, defaultValue, description, expects, parse }
}

/** Defines a whole number. By default, it's a timeout in milliseconds. */
export function integer<D extends string | undefined>(
  name: string,
  defaultValue: D,
  description: string,
  { min = 1, max = 2 ** 31 - 1 }: { readonly min?: number; readonly max?: number } = {},
): Variable<number, D> {
  const parse = (value: string): number | undefined =>
    /^(?:0|[1-9][0-9]*)$/.test(value) && Number(value) >= min && Number(value) <= max ? Number(value) : undefined
  return { name, defaultValue, description, expects: `an integer from ${min} to ${max}`, parse }
}

export function flag(name: string, defaultValue: '0' | '1', description: string): Variable<boolean, '0' | '1'> {
  const parse = (value: string): boolean | undefined => (/^[01]$/.test(value) ? value === '1' : undefined)
  return { name, defaultValue, description, expects: '1 or 0', parse }
}

/** The origins whose pages can call the service with CORS; `*` means all origins. */
export type Origins = ReadonlySet<string> | '*'

export function parseOrigins(value: string): Origins | undefined {
  const origins = value.split(',').map((origin) => origin.trim())
  if (value.trim() === '*') return '*'
  return origins.every(isOrigin) ? new Set(origins) : undefined
}

/** Returns whether a string is an origin as browsers send it: in lower case, without the default port or a path. */
function isOrigin(value: string): boolean {
  const { protocol, host } = URL.canParse(value) ? new URL(value) : { protocol: '', host: '' }
  return host !== '' && !host.includes('*') && value === `${protocol}//${host}`
}

export type Environment = Readonly<NodeJS.ProcessEnv>

/** A variable without a default is undefined if it isn't set. */
export type Value<V> = V extends Variable<infer T, infer D> ? (D extends string ? T : T | undefined) : never

/** @throws SettingError if the value is invalid */
export function readVariable<V extends Variable<unknown>>(environment: Environment, variable: V): Value<V> {
  const { name, defaultValue, expects, parse } = variable
  const value = environment[name] ?? defaultValue
  if (value === undefined) return undefined as Value<V>
  // Node decodes bytes that aren't UTF-8 as U+FFFD, which could make two different owners or paths identical.
  const parsed = value.includes('\ufffd') ? undefined : parse(value)
  if (parsed === undefined) throw new SettingError(`${name} must be ${expects}`)
  return parsed as Value<V>
}

export const removeServiceVariables = (environment: Environment): Environment =>
  Object.fromEntries(Object.entries(environment).filter(([name, value]) => !SERVICE_VARIABLE.test(`${name}=${value}`)))

/**
 * Rejects unknown variables with our prefix, because a misspelled PLANT_STORE_TOKENS must never start a server with a
 * demo token.
 */
export function checkVariableNames(environment: Environment, knownNames: readonly string[]): void {
  // Without the prefix, PORT is the nearest name to PLANT_STORE_PORT.
  const removePrefix = (name: string): string => name.toUpperCase().replace(PREFIX, '')
  for (const name of Object.keys(environment)) {
    if (!name.toUpperCase().startsWith(PREFIX) || knownNames.includes(name)) continue
    const distances = knownNames.map((known) => editDistance(removePrefix(name), removePrefix(known)))
    const nearest = knownNames[distances.indexOf(Math.min(...distances))]
    throw new SettingError(`unknown setting ${name}; did you mean ${nearest}?`)
  }
}

/** Returns the Levenshtein distance between two strings. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1]
    for (let j = 0; j < b.length; j++) {
      next.push(Math.min(next[j]! + 1, row[j + 1]! + 1, row[j]! + (a[i] === b[j] ? 0 : 1)))
    }
    row = next
  }
  return row[b.length]!
}
