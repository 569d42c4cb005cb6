import { inspect } from 'node:util'
import { isNativeError } from 'node:util/types'
import { callSafely } from './maybe-promise.ts'

export const MAX_INT32: number = 2 ** 31 - 1

/** The longest delay that Node's timers support, in milliseconds. */
export const MAX_TIMER_MS: number = MAX_INT32

export type Resolved<Options> = { readonly [Name in keyof Options]-?: NonNullable<Options[Name]> }

interface Bounds {
  readonly min: number
  readonly max: number
}

type Callback = (...args: readonly unknown[]) => unknown

/**
 * Validates options and fills in the defaults. The type of a default determines which values are valid: booleans; whole
 * numbers, at least 1 unless `bounds` says otherwise; or functions, whose errors are ignored.
 * @throws TypeError if an option is invalid or unknown
 */
export function withDefaults<Options extends object>(
  options: Options,
  defaults: Resolved<Options>,
  bounds: { readonly [Name in keyof Options]?: Bounds } = {},
): Resolved<Options> {
  const names = Object.keys(defaults) as (keyof Options & string)[]
  const provided = readOptions(options, names)
  const resolved: Record<string, unknown> = { ...defaults }
  for (const name of names) {
    const value: unknown = provided[name]
    if (value === undefined || value === defaults[name]) continue
    const type = typeof defaults[name]
    if (type === 'number') checkInteger(name, value, readMember(bounds, name))
    else if (typeof value !== type)
      throw invalidOption(`options.${name}`, type === 'boolean' ? 'true or false' : 'a function', value)
    resolved[name] =
      type === 'function' ? (...args: unknown[]) => callSafely(() => (value as Callback)(...args)) : value
  }
  return resolved as Resolved<Options>
}

/**
 * Reads the named options. Ignores members of `Object.prototype`, because a library with a prototype pollution
 * vulnerability lets clients add members there. Members that the options inherit from another prototype are read.
 * @throws TypeError if the options aren't an object, or if an option is unknown
 */
export function readOptions<Options extends object>(
  options: Options,
  names: readonly (keyof Options & string)[],
): Options {
  if (!isObject(options)) throw invalidOption('options', 'an object', options)
  const unknownName = Object.keys(options).find((name) => !(names as readonly string[]).includes(name))
  if (unknownName !== undefined) throw new TypeError(`unknown option "${unknownName}"`)
  return Object.fromEntries(names.map((name) => [name, readMember(options, name)])) as Options
}

/**
 * Reads an optional member of an object that the host provided. Like {@link readOptions}, ignores `Object.prototype`.
 */
export function readMember<Value extends object, Name extends keyof Value & string>(
  value: Value,
  name: Name,
): Value[Name] | undefined {
  return hasOption(value, name) ? value[name] : undefined
}

/** Whether a member is defined on an object or on any of its prototypes except the last. */
export function hasOption(value: object, name: string): boolean {
  if (Object.hasOwn(value, name)) return true
  const prototype = Object.getPrototypeOf(value) as object | null
  return prototype !== null && Object.getPrototypeOf(prototype) !== null && hasOption(prototype, name)
}

/** Options whose names end in `Ms` are delays for timers. */
function checkInteger(name: string, value: unknown, bounds: Bounds | undefined): void {
  const { min, max } = bounds ?? { min: 1, max: name.endsWith('Ms') ? MAX_TIMER_MS : Number.MAX_SAFE_INTEGER }
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return
  throw invalidOption(`options.${name}`, `a whole number from ${min} to ${max}`, value)
}

/** Whether a value is an error from any realm. In Jest, Node's own errors come from another realm. */
export const isError = (value: unknown): value is Error => value instanceof Error || isNativeError(value)

export const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

export const invalidOption = (name: string, expected: string, actual: unknown): TypeError =>
  new TypeError(`${name} must be ${expected}, not ${formatValue(actual)}`)

/** Formats a value for an error message. Omits the members of objects, because they might be secrets. */
export const formatValue = (value: unknown): string => inspect(value, { depth: -1, customInspect: false })
