import { MAX_TIMER_MS } from '../../option-checks.ts'

/**
 * A setting is wrong, or what it names cannot be had now. The message names the variable and what it takes, and never
 * quotes what it holds.
 */
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

/** A variable of the environment. */
export interface Variable<T> {
  readonly name: string
  /** The value if the variable is not set. */
  readonly preset: T
  /** The same as text; undefined if no text stands for it. */
  readonly shown: string | undefined
  /** What it takes, in words for people. */
  readonly takes: string
  /**
   * Reads what the variable is set to.
   * @throws SettingError
   */
  readonly parse: (value: string) => T
}

/** A variable that takes text. */
export function text<P extends string | undefined>(
  name: string,
  preset: P,
  takes: string,
  isValid: (value: string) => boolean,
): Variable<string | P> {
  function parse(value: string): string {
    if (!isValid(value)) throw new SettingError(name, `takes ${takes}`)
    return value
  }
  return { name, preset, shown: preset, takes, parse }
}

/** A variable that takes a whole number in decimal. */
export function wholeNumber<P extends number | undefined>(
  name: string,
  preset: P,
  min: number,
  max: number,
  meaning: string,
): Variable<number | P> {
  const takes = `a whole number from ${min} to ${max}: ${meaning}`
  function parse(value: string): number {
    const number = Number(value)
    if (!/^(?:0|[1-9][0-9]*)$/.test(value) || number < min || number > max) {
      throw new SettingError(name, `takes ${takes}`)
    }
    return number
  }
  return { name, preset, shown: preset?.toString(), takes, parse }
}

/** A variable that takes the permissions of a file. */
export function permissions(name: string, preset: number, meaning: string): Variable<number> {
  const takes = `permissions in octal such as 660: ${meaning}`
  function parse(value: string): number {
    if (!/^[0-7]{3}$/.test(value)) throw new SettingError(name, `takes ${takes}`)
    return parseInt(value, 8)
  }
  return { name, preset, shown: preset.toString(8), takes, parse }
}

/** A variable that takes a time in milliseconds. */
export function milliseconds<P extends number | undefined>(
  name: string,
  preset: P,
  min: 0 | 1,
  meaning: string,
): Variable<number | P> {
  return wholeNumber(name, preset, min, MAX_TIMER_MS, `milliseconds ${meaning}`)
}

/** A variable that switches something on or off. */
export function flag(name: string, preset: boolean, meaning: string): Variable<boolean> {
  const takes = `1 or 0: ${meaning}`
  function parse(value: string): boolean {
    if (value !== '1' && value !== '0') throw new SettingError(name, `takes ${takes}`)
    return value === '1'
  }
  return { name, preset, shown: preset ? '1' : '0', takes, parse }
}

/** The origins whose pages may use the service; `*` stands for all. */
export type Origins = ReadonlySet<string> | '*'

/** A variable that takes origins. */
export function originList(name: string): Variable<Origins | undefined> {
  const takes = 'origins such as https://app.example, separated by commas, or *: whose pages may use the service'
  function parse(value: string): Origins {
    const origins = value.split(',').map((origin) => origin.trim())
    if (value.trim() === '*') return '*'
    if (!origins.every(isOrigin)) throw new SettingError(name, `takes ${takes}`)
    return new Set(origins)
  }
  return { name, preset: undefined, shown: undefined, takes, parse }
}

/** Whether a text is an origin as browsers write it: in lower case, without the default port and without a path. */
function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, host } = new URL(text)
  return host !== '' && !host.includes('*') && text === `${protocol}//${host}`
}
