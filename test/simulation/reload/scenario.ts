import fc from 'fast-check'
import { faultSequences } from '../simulation.ts'

/** Durations: mostly about as long as the delay of a recheck. */
const ms = fc.oneof(
  { arbitrary: fc.nat(20), weight: 4 },
  { arbitrary: fc.integer({ min: 80, max: 220 }), weight: 4 },
  { arbitrary: fc.nat(3000), weight: 1 },
  { arbitrary: fc.nat(15_000), weight: 1 },
)

/** A fault in a file system operation. */
const fault = fc.record({ ms, code: fc.constantFrom(undefined, undefined, 'EIO', 'EMFILE') })
export type Fault = typeof fault extends fc.Arbitrary<infer T> ? T : never

/** Creates the URL of the store. */
export const createUrl = (password: string): string => `postgres://ann${password}@host/plants?sslmode=require`

const CHANGED_URLS: readonly ((url: string) => string)[] = [
  (url) => url.replace('ann', 'bob'),
  (url) => url.replace('host', 'other'),
  (url) => url.replace('host', 'host:5433'),
  (url) => url.replace('plants', 'others'),
  (url) => url.replace('?sslmode=require', ''),
  (url) => url.replace('secret0', 'sec/ret4'),
  (url) => `${url}\n${url}`,
  (url) => `${url} `,
  (url) => url.replace('plants', 'pl\xe4nts'),
]

/** Variants that editors write: with a byte-order mark in UTF-8, or with a CR before the newline. */
const EDITOR_FORMATS: readonly ((url: string) => string)[] = [
  (url) => url,
  (url) => url,
  (url) => `\xef\xbb\xbf${url}`,
  (url) => `${url}\r`,
]

const entry = fc
  .tuple(fc.constantFrom('ann', 'ann', 'bob'), fc.nat(5), fc.constantFrom('', '', ' read'))
  .map(([owner, token, access]) => `${owner}:t${token}${access}`)
const end = fc.constantFrom('\n', '\n', '\n', '')

/** States without readable text, marked by a NUL character. */
const fileError = fc.constantFrom('\0ENOENT', '\0EACCES', '\0folder', '\0huge')

const tokens = fc.oneof(
  {
    arbitrary: fc.uniqueArray(entry, { minLength: 1, maxLength: 4, selector: (line) => line.slice(4, 6) }),
    weight: 6,
  },
  // Most of these are invalid.
  { arbitrary: fc.array(fc.oneof(entry, fc.constantFrom('', '# t0', 'ann t1', '\xff')), { maxLength: 4 }), weight: 2 },
)

/** The initial URL with another password, and URLs with other changes. */
const url = fc.oneof(
  {
    arbitrary: fc
      .tuple(fc.constantFrom(':secret0', ':secret1', ':s%65cret0', ''), fc.constantFrom(...EDITOR_FORMATS))
      .map(([password, wrap]) => wrap(createUrl(password))),
    weight: 3,
  },
  {
    arbitrary: fc.constantFrom(
      '',
      'memory:',
      'secret3',
      ...CHANGED_URLS.map((change) => change(createUrl(':secret0'))),
    ),
    weight: 1,
  },
)

/** Generates a change that replaces the text of a file, as a whole or in chunks. */
const createChange = <Name extends string>(name: Name, lines: fc.Arbitrary<string>) =>
  fc.record({
    name: fc.constant(name),
    how: fc.constantFrom('rename', 'link', 'write', 'write'),
    text: fc.oneof(
      { arbitrary: fc.tuple(lines, end).map((parts) => parts.join('')), weight: 8 },
      { arbitrary: fileError, weight: 1 },
    ),
    /** The delay and length of each chunk. The last chunk contains the rest. */
    chunks: fc.array(fc.tuple(ms, fc.nat(16)), { minLength: 1, maxLength: 3 }),
  })

const event = fc.oneof(
  {
    arbitrary: createChange(
      'tokens',
      tokens.map((lines) => lines.join('\n')),
    ),
    weight: 5,
  },
  { arbitrary: createChange('url', url), weight: 2 },
  { arbitrary: fc.record({ name: fc.constant('signal' as const) }), weight: 4 },
)
export type Event = typeof event extends fc.Arbitrary<infer T> ? T : never
export type Change = Exclude<Event, { name: 'signal' }>

// fast-check's bias toward small values would make coincidences rare.
export const scenarios = fc.noBias(
  fc.record({
    /** The end of the initial files: a newline or nothing. */
    end,
    events: fc.array(
      fc.tuple(fc.oneof({ arbitrary: ms, weight: 3 }, { arbitrary: fc.nat(12_000), weight: 1 }), event),
      {
        maxLength: 30,
        size: 'max',
      },
    ),
    faults: faultSequences(fault, 15, 3, 8),
  }),
)
export type Scenario = typeof scenarios extends fc.Arbitrary<infer T> ? T : never
