import { inspect } from 'node:util'

export const MAX_INT32: number = 2 ** 31 - 1

/** The longest time that a timer of Node takes. */
export const MAX_TIMER_MS: number = MAX_INT32

/** Options with every default in place. */
export type Resolved<Options> = { readonly [Name in keyof Options]-?: NonNullable<Options[Name]> }

/**
 * Puts defaults in place of the options that are not given. A default says what its option may be: true or false, a
 * function, or a whole number.
 * @param bounds the least and the greatest value of whole numbers that are not from 1 on
 * @throws TypeError if an option is wrong, or does not exist
 */
export function withDefaults<Options extends object>(
  options: Options,
  defaults: Resolved<Options>,
  bounds: { readonly [Name in keyof Options]?: { readonly min: number; readonly max?: number } } = {},
): Resolved<Options> {
  if (!isObject(options)) throw wrong('options', 'an object', options)
  checkNoUnknown(options, defaults)
  const resolved: Record<string, unknown> = { ...defaults }
  for (const name of Object.keys(defaults) as (keyof Options & string)[]) {
    const value: unknown = options[name]
    if (value === undefined) continue
    const type = typeof defaults[name]
    const { min, max } = bounds[name] ?? { min: 1 }
    if (type === 'number') checkWholeNumber(name, value as number, min, max)
    else if (typeof value !== type)
      throw wrong(`options.${name}`, type === 'boolean' ? 'true or false' : 'a function', value)
    resolved[name] = value
  }
  return resolved as Resolved<Options>
}

/** @throws TypeError if there is an option that does not exist */
export function checkNoUnknown(options: object, known: object = {}): void {
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(known, name)) throw new TypeError(`unknown option "${name}"`)
  }
}

/**
 * Names of times end in `Ms`, and a timer must take them.
 * @throws TypeError if an option is neither absent nor a whole number from `min` to `max`
 */
export function checkWholeNumber(
  name: string,
  value: number | undefined,
  min: number,
  max: number = name.endsWith('Ms') ? MAX_TIMER_MS : Number.MAX_SAFE_INTEGER,
): number | undefined {
  if (value === undefined || (Number.isSafeInteger(value) && value >= min && value <= max)) return value
  throw wrong(`options.${name}`, `a whole number from ${min} to ${max}`, value)
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** The error for a wrong option or argument: names it and quotes what came, without the members of an object. */
export function wrong(name: string, expected: string, got: unknown): TypeError {
  return new TypeError(`${name} must be ${expected}, not ${quote(got)}`)
}

/** Quotes a value without the members of an object, which may be secrets. */
export function quote(value: unknown): string {
  return inspect(value, { depth: -1, customInspect: false })
}
