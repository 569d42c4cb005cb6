import { inspect } from 'node:util'

export const MAX_INT32: number = 2 ** 31 - 1

/** The longest time that a timer of Node takes. */
export const MAX_TIMER_MS: number = MAX_INT32

/** @throws TypeError if there is an option that does not exist */
export function checkNoUnknown(options: object, known: object = {}): void {
  for (const name of Object.keys(options)) {
    if (!Object.hasOwn(known, name)) throw new TypeError(`unknown option "${name}"`)
  }
}

/** @throws TypeError if an option is neither absent nor a whole number from `min` to `max` */
export function checkWholeNumber(
  name: string,
  value: number | undefined,
  min: number,
  max: number = Number.MAX_SAFE_INTEGER,
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
