import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { createPlantStore, memoryStore, type PlantStoreOptions } from '../src/index.ts'
import { resolveOptions } from '../src/options.ts'

const tokens = { secret: 'ada' }
const store = memoryStore()

const WRONG: readonly (readonly [name: string, options: unknown, message: string])[] = [
  ['no options', undefined, 'options must be an object, not undefined'],
  ['options that are no object', 'secret', "options must be an object, not 'secret'"],
  ['an option that does not exist', { tokens, maxBodybytes: 1 }, 'unknown option "maxBodybytes"'],
  ['neither tokens nor authenticate', {}, 'options must have tokens or authenticate: who may ask?'],
  [
    'both tokens and authenticate',
    { tokens, authenticate: () => 'ada' },
    'options must have either tokens or authenticate, not both',
  ],
  [
    'an authenticate that is no function',
    { authenticate: 'ada' },
    "options.authenticate must be a function, not 'ada'",
  ],
  [
    'a token in place of a table',
    { tokens: 'secret' },
    'options.tokens must be an object or a Map, not of type string',
  ],
  ['tokens that are null', { tokens: null }, 'options.tokens must be an object or a Map, not of type object'],
  [
    'a token that no header could carry',
    { tokens: { 'se cret': 'ada' } },
    `options.tokens: the token of 'ada' must be letters, digits and -._~+/, then any "="`,
  ],
  ...['undefined', 'null'].map(
    (token) =>
      [
        `the token "${token}"`,
        { tokens: { [token]: 'ada' } },
        `options.tokens: the token of 'ada' must not be "${token}"`,
      ] as const,
  ),
  [
    'an unknown access',
    { tokens: { secret: { owner: 'ada', access: 'admin' } } },
    `options.tokens: a token must have an access of "read" or "write", not 'admin'`,
  ],
  [
    'an empty token',
    { tokens: { '': 'ada' } },
    `options.tokens: the token of 'ada' must be letters, digits and -._~+/, then any "="`,
  ],
  ...['', 'a\0b', '\ud800', 7, null].map(
    (owner) =>
      [
        `the owner ${JSON.stringify(owner)}`,
        { tokens: { secret: owner } },
        'options.tokens: a token must have an owner: a non-empty string of well-formed Unicode without U+0000',
      ] as const,
  ),
  ['a store that is none', { tokens, store: null }, 'options.store must be a store, not null'],
  ['a store without list', { tokens, store: { ...store, list: 1 } }, 'options.store.list must be a function, not 1'],
  ...['/', 'api', '/api/', '//', '/a?b', '/a#b', '/a b', '/%zz', 7].map(
    (basePath) =>
      [
        `the basePath ${basePath}`,
        { tokens, basePath },
        `options.basePath must be a path such as "/api/v1", without a slash at its end, not ${typeof basePath === 'string' ? `'${basePath}'` : basePath}`,
      ] as const,
  ),
  [
    'an object in place of a basePath, without quoting what it holds',
    { tokens, basePath: tokens },
    'options.basePath must be a path such as "/api/v1", without a slash at its end, not [Object]',
  ],
  [
    'an array in place of a basePath',
    { tokens, basePath: ['/api'] },
    'options.basePath must be a path such as "/api/v1", without a slash at its end, not [Array]',
  ],
  ...(['maxBodyBytes', 'maxLimit', 'maxListsPerOwner'] as const).flatMap((name) =>
    [0, -1, 1.5, NaN, '10'].map(
      (value) =>
        [
          `the ${name} ${value}`,
          { tokens, [name]: value },
          `options.${name} must be a whole number from 1 to 9007199254740991, not ${typeof value === 'string' ? `'${value}'` : value}`,
        ] as const,
    ),
  ),
  [
    'a time-out beyond what timers take',
    { tokens, storeTimeoutMs: 2 ** 31 },
    'options.storeTimeoutMs must be a whole number from 1 to 2147483647, not 2147483648',
  ],
  ...(['validate', 'onError', 'onResponse'] as const).map(
    (name) =>
      [
        `an ${name} that is no function`,
        { tokens, [name]: true },
        `options.${name} must be a function, not true`,
      ] as const,
  ),
]

for (const [name, options, message] of WRONG) {
  test(`refuses ${name}`, () => {
    assert.throws(() => createPlantStore(options as PlantStoreOptions), new TypeError(message))
  })
}

test('never quotes a token', () => {
  assert.throws(
    () => createPlantStore({ tokens: { 'my secret': 'ada' } }),
    (error: Error) => !error.message.includes('my secret'),
  )
})

test('takes tokens as a Map', () => {
  assert.equal(createPlantStore({ tokens: new Map([['secret', 'ada']]) }).length, 3)
})

const request = new IncomingMessage(new Socket())

const DEFAULTS = {
  basePath: '',
  maxBodyBytes: 65_536,
  maxLimit: Infinity,
  maxListsPerOwner: 32,
  storeTimeoutMs: 10_000,
  validate: undefined,
  onError: undefined,
  onResponse: undefined,
}

test('have a default for each but who is let in', () => {
  const { store: chosen, findCaller, ...settings } = resolveOptions({ tokens })
  assert.deepEqual(settings, DEFAULTS)
  assert.deepEqual(Object.keys(chosen), Object.keys(memoryStore()))
  assert.deepEqual(findCaller('secret', request), { owner: 'ada', access: 'write' })
})

test('have the same defaults if they are undefined', () => {
  const undefineds = Object.fromEntries(Object.keys({ ...DEFAULTS, store }).map((name) => [name, undefined]))
  const { store: chosen, findCaller, ...settings } = resolveOptions({ tokens, ...undefineds })
  assert.deepEqual(settings, DEFAULTS)
  assert.deepEqual(Object.keys(chosen), Object.keys(memoryStore()))
  assert.equal(findCaller('other', request), undefined)
})

const GIVEN = {
  store,
  maxBodyBytes: 1,
  maxLimit: 2,
  maxListsPerOwner: 3,
  storeTimeoutMs: 2 ** 31 - 1,
  validate: () => undefined,
  onError: () => undefined,
  onResponse: () => undefined,
}

for (const basePath of ['', '/api', '/api/v1', '/%C3%A9']) {
  test(`are what was given, with the basePath "${basePath}"`, () => {
    const { findCaller, ...settings } = resolveOptions({ tokens, ...GIVEN, basePath })
    assert.deepEqual(settings, { ...GIVEN, basePath })
    assert.equal(typeof findCaller, 'function')
  })
}
