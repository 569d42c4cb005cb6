import assert from 'node:assert/strict'
import { once } from 'node:events'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { createPlantStore, memoryStore, type PlantStoreOptions } from '../../src/index.ts'
import { DEFAULT_OPTIONS, resolveOptions } from '../../src/options.ts'

const tokens = { secret: 'ada' }
const store = memoryStore()

const tokenRule = 'must be a string of letters, digits and -._~+/, with "=" only at its end'
const holderRule =
  'options.tokens: a token must have an owner, a non-empty string of well-formed Unicode without U+0000, ' +
  'or an object with only an owner and an access, "read" or "write"'
const pathRule = 'options.basePath must be a path such as "/api/v1", without a trailing slash, not'

type Row = readonly [options: unknown, message: string]

function createIntegerRows(name: string, max: number, ...values: unknown[]): Row[] {
  const must = `options.${name} must be a whole number from 1 to ${max}, not`
  return values.map((value) => [{ tokens, [name]: value }, `${must} ${inspect(value)}`])
}

function createMethodRow(name: string, value: unknown): Row {
  return [
    { tokens, store: { ...store, [name]: value } },
    `options.store.${name} must be a function, not ${String(value)}`,
  ]
}

const INVALID_OPTIONS: readonly Row[] = [
  [undefined, 'options must be an object, not undefined'],
  ['secret', "options must be an object, not 'secret'"],
  [{ tokens, maxBodybytes: 1 }, 'unknown option "maxBodybytes"'],
  [{ tokens, maxListsPerOwner: 1 }, 'unknown option "maxListsPerOwner"'],
  [{}, 'either `tokens` or `authenticate` is required'],
  [{ tokens, authenticate: () => 'ada' }, '`tokens` and `authenticate` cannot be combined: set only one of them'],
  [{ authenticate: 'ada' }, "options.authenticate must be a function, not 'ada'"],
  ...[
    ['secret', 'string'],
    [null, 'null'],
    // Without this check, the characters of the token would be valid tokens.
    [['a-long-random-token'], 'array'],
    [new Set(['a-long-random-token']), 'object'],
    [[['secret', 'ada']], 'array'],
  ].map(([tokens, type]): Row => [
    { tokens },
    `options.tokens must be a plain object or a Map, not of type ${type as string}`,
  ]),
  ...[7, undefined, 'se cret', ''].map((token): Row => [
    { tokens: new Map([[token, 'ada']]) },
    `options.tokens: the token of 'ada' ${tokenRule}`,
  ]),
  [{ tokens: { undefined: 'ada' } }, `options.tokens: the token of 'ada' must not be "undefined"`],
  [{ tokens: { null: 'ada' } }, `options.tokens: the token of 'ada' must not be "null"`],
  [{ tokens: { secret: { owner: 'ada', acess: 'read' } } }, holderRule],
  [{ tokens: { secret: 7 } }, holderRule],
  [{ tokens, store: null }, 'options.store must be a store, not null'],
  ...['create', 'list', 'delete', 'ping', 'close'].map((name) => createMethodRow(name, 1)),
  ...['create', 'list', 'delete'].map((name) => createMethodRow(name, undefined)),
  ...['/', 'api', '/api/', '//', '/a?b', '/a#b', '/a b', '/%zz'].map((basePath): Row => [
    { tokens, basePath },
    `${pathRule} '${basePath}'`,
  ]),
  [{ tokens, basePath: 7 }, `${pathRule} 7`],
  // The message doesn't quote the contents of objects, which may be secret.
  [{ tokens, basePath: tokens }, `${pathRule} [Object]`],
  [{ tokens, basePath: { [inspect.custom]: () => 'secret' } }, `${pathRule} [Object]`],
  ...createIntegerRows('maxLimit', 9007199254740991, 0, -1, 1.5, NaN, '10'),
  ...createIntegerRows('maxBodyBytes', 67108864, 0, 67_108_865, Infinity),
  ...createIntegerRows('storeTimeoutMs', 2147483647, 2 ** 31),
  ...['validate', 'onError', 'onResponse'].map((name): Row => [
    { tokens, [name]: true },
    `options.${name} must be a function, not true`,
  ]),
]

for (const [options, message] of INVALID_OPTIONS) {
  test(`createPlantStore rejects ${inspect(options)}: ${message}`, () => {
    assert.throws(() => createPlantStore(options as PlantStoreOptions), new TypeError(message))
  })
}

const request = new IncomingMessage(new Socket())

const DEFAULTS = {
  ...DEFAULT_OPTIONS,
  basePath: '',
  validate: undefined,
  onResponse: undefined,
}

for (const given of [
  {},
  DEFAULTS,
  Object.fromEntries(Object.keys({ ...DEFAULTS, store }).map((name) => [name, undefined])),
]) {
  test(`resolveOptions applies all defaults to tokens with ${inspect(given)}`, () => {
    const { store: chosen, authenticate, onError, ...settings } = resolveOptions({ tokens, ...given })
    assert.deepEqual(settings, DEFAULTS)
    assert.deepEqual(Object.keys(chosen), Object.keys(memoryStore()))
    assert.deepEqual(authenticate('secret', request), { owner: 'ada', access: 'write' })
    assert.equal(typeof onError, 'function')
  })
}

test('the default onError emits a process warning even if the error is null', async () => {
  const warned = once(process, 'warning')
  resolveOptions({ tokens }).onError(null, request)
  const [{ message }] = (await warned) as [Error]
  assert.match(message, /^A request failed: null \(/)
})

const CUSTOM_OPTIONS = {
  store: { ...store, close: () => undefined },
  maxBodyBytes: 1,
  maxLimit: 2,
  storeTimeoutMs: 2 ** 31 - 1,
  validate: () => undefined,
  onError: () => undefined,
  onResponse: () => undefined,
}

for (const basePath of ['', '/api', '/api/v1']) {
  test(`resolveOptions keeps custom options (basePath "${basePath}")`, () => {
    const { authenticate, ...settings } = resolveOptions({
      tokens: new Map([['secret', 'ada']]),
      ...CUSTOM_OPTIONS,
      basePath,
    })
    assert.deepEqual(settings, { ...CUSTOM_OPTIONS, basePath })
    assert.deepEqual(authenticate('secret', request), { owner: 'ada', access: 'write' })
  })
}
