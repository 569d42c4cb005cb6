import type { IncomingMessage } from 'node:http'
import { createRouter } from '../http/route.ts'
import { OPERATIONS, RESOURCE_PATHS, type ResourcePath } from '../operations.ts'
import { PROGRAM_METHODS, PROGRAM_PATHS, type ProgramPath } from './program-paths.ts'
import { SettingError, type Variable } from './variables.ts'

/** The origins whose pages may use the service; `*` stands for all. */
export type Origins = ReadonlySet<string> | '*'

/** What a page may read of a response, besides what the Fetch standard lets it read anyway. */
const EXPOSED = ['Access-Control-Expose-Headers', 'Link, WWW-Authenticate, Retry-After, X-Request-Id, Allow']

/** `*` would not cover Authorization (Fetch standard, section 3.3.2). Browsers keep the response for two hours at most. */
const PREFLIGHT = [
  'Access-Control-Allow-Headers',
  'Authorization, Content-Type, X-Request-Id',
  'Access-Control-Max-Age',
  '7200',
]

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
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#@*\s]+$/.test(text) || !URL.canParse(text)) return false
  const { protocol, host } = new URL(text)
  return text === `${protocol}//${host}`
}

/**
 * The header fields of a response to an origin. With a list, responses depend on the origin whether or not there is one,
 * so a cache must know.
 * @param origin the Origin field of the request
 */
export function corsFields(origins: Origins, origin: string | undefined): readonly string[] {
  if (origins === '*') return ['Access-Control-Allow-Origin', '*', ...EXPOSED]
  if (origin === undefined || !origins.has(origin)) return ['Vary', 'Origin']
  return ['Vary', 'Origin', 'Access-Control-Allow-Origin', origin, ...EXPOSED]
}

const route = createRouter<ResourcePath | ProgramPath>('', [...RESOURCE_PATHS, ...PROGRAM_PATHS])

/** The further header fields of the response to a preflight; none if a request is none, or is for no resource. */
export function preflightFields({ method, headers, url }: IncomingMessage): readonly string[] {
  if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) return []
  const path = route(url!)?.path
  if (headers.origin === undefined || path === undefined) return []
  const methods = path in OPERATIONS ? [...Object.keys(OPERATIONS[path as ResourcePath]), 'OPTIONS'] : PROGRAM_METHODS
  return ['Access-Control-Allow-Methods', methods.join(', '), ...PREFLIGHT]
}
