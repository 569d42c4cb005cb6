import { MAX_TIMER_MS } from '../../option-checks.ts'

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
  readonly preset: string | undefined
  readonly takes: string
  readonly parse: (value: string) => T
}

/** @param read gives undefined for what the variable does not take */
function variable<T>(
  name: string,
  preset: string | undefined,
  takes: string,
  read: (value: string) => T | undefined,
): Variable<T> {
  function parse(value: string): T {
    const found = read(value)
    if (found === undefined) throw new SettingError(name, `takes ${takes}`)
    return found
  }
  return { name, preset, takes, parse }
}

export function text<P extends string | undefined>(
  name: string,
  preset: P,
  takes: string,
  isValid: (value: string) => boolean,
): Variable<string | P> {
  return variable(name, preset, takes, (value) => (isValid(value) ? value : undefined))
}

/** Its default bounds are those of a time in milliseconds. */
export function integer<P extends number | undefined>(
  name: string,
  preset: P,
  meaning: string,
  min = 1,
  max: number = MAX_TIMER_MS,
): Variable<number | P> {
  return variable(name, preset?.toString(), `a whole number from ${min} to ${max}: ${meaning}`, (value) => {
    const number = Number(value)
    return /^(?:0|[1-9][0-9]*)$/.test(value) && number >= min && number <= max ? number : undefined
  })
}

export function permissions(name: string, preset: string, meaning: string): Variable<number> {
  return variable(name, preset, `permissions in octal such as 660: ${meaning}`, (value) =>
    /^[0-7]{3}$/.test(value) ? parseInt(value, 8) : undefined,
  )
}

export function flag(name: string, preset: '0' | '1', meaning: string): Variable<boolean> {
  return variable(name, preset, `1 or 0: ${meaning}`, (value) => (/^[01]$/.test(value) ? value === '1' : undefined))
}

/** The origins whose pages may use the service; `*` stands for all. */
export type Origins = ReadonlySet<string> | '*'

export function originList(name: string): Variable<Origins | undefined> {
  const takes = 'origins such as https://app.example, separated by commas, or *: whose pages may use the service'
  return variable<Origins>(name, undefined, takes, (value) => {
    const origins = value.split(',').map((origin) => origin.trim())
    if (value.trim() === '*') return '*'
    return origins.every(isOrigin) ? new Set(origins) : undefined
  })
}

/** Whether a text is an origin as browsers write it: in lower case, without the default port and without a path. */
function isOrigin(text: string): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, host } = new URL(text)
  return host !== '' && !host.includes('*') && text === `${protocol}//${host}`
}
