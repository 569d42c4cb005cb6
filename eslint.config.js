import { defineConfig, globalIgnores } from 'eslint/config'
import tseslint from 'typescript-eslint'

/** Modules that know nothing of the service, so that all may import them. */
const BASE = ['scheduler.ts', 'maybe-promise.ts', 'option-checks.ts', 'timers.ts', 'version.ts']
const CORE = ['http/', 'openapi/', 'plants/', 'operations.ts', 'options.ts', 'plant-store.ts']

/**
 * Lets files import, of what is outside their folder, only what is named here. A folder has a slash at its end.
 * @param up how the files, which are at the same depth, write the path of src
 * @param types what they may import types of
 */
function mayImport(files, up, modules, types = []) {
  const anyOf = (paths) => `(?:${paths.join('|').replaceAll('.', '\\.')})`
  const src = `^${anyOf([up])}`
  const allowed = [...BASE, ...modules]
  const message = 'Imports run one way: server → standalone → plant-store → operations → http → plants ← stores.'
  const patterns = [{ regex: `${src}(?!${anyOf([...allowed, ...types])})`, message }]
  if (types.length > 0) {
    patterns.push({ regex: `${src}(?!${anyOf(allowed)})${anyOf(types)}`, message, allowTypeImports: true })
  }
  if (up === '../../') {
    const message = 'A folder in a folder imports nothing of those beside it. What two need is in the folder above.'
    patterns.push({ regex: '^\\.\\./[a-z-]+/', message })
  }
  return { files, rules: { '@typescript-eslint/no-restricted-imports': ['error', { patterns }] } }
}

function folderMayImport(folder, modules, types) {
  return [
    mayImport([`src/${folder}/*.ts`], '../', modules, types),
    mayImport([`src/${folder}/*/*.ts`], '../../', modules, types),
  ]
}

const DIRECTION_OF_IMPORTS = [
  mayImport(['src/*.ts'], './', []),
  ...folderMayImport('plants', []),
  ...folderMayImport('stores', ['plants/']),
  ...folderMayImport('conformance', ['plants/']),
  ...folderMayImport('http', ['plants/int64.ts', 'plants/plant.ts', 'plants/store.ts', 'plants/text.ts'], ['plants/']),
  mayImport(['src/operations.ts'], './', ['http/', 'plants/']),
  ...folderMayImport('openapi', ['http/', 'plants/', 'operations.ts']),
  mayImport(['src/options.ts', 'src/plant-store.ts', 'src/index.ts'], './', [...CORE, 'stores/memory-store.ts']),
  ...folderMayImport('http-server', ['http/']),
  ...folderMayImport('standalone', [
    ...CORE,
    'http-server/',
    'stores/batch-size.ts',
    'stores/store-metrics.ts',
    'stores/lookup.ts',
    'stores/open-store.ts',
  ]),
  mayImport(['src/server.ts'], './', ['standalone/']),
  {
    files: ['src/**/*.ts'],
    // The first must run on any Node, to say which one it needs; the second loads only the store that is opened.
    ignores: ['src/server.ts', 'src/stores/open-store.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        { selector: 'ImportExpression[source.value=/^\\./]', message: 'The direction of this import is not checked.' },
      ],
    },
  },
]

/** Fake timers replace all of these in the tests of a host. */
const FAKED = [
  ...['setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'clearInterval', 'clearImmediate'],
  ...['queueMicrotask', 'performance'],
]
const FROM_TIMERS = 'Import it from src/timers.ts, which fake timers cannot replace.'

const TIMERS = {
  files: ['src/**/*.ts'],
  ignores: ['src/timers.ts', 'src/standalone/paths/page/browser/**'],
  rules: {
    'no-restricted-globals': ['error', ...FAKED.map((name) => ({ name, message: FROM_TIMERS }))],
    'no-restricted-imports': [
      'error',
      { name: 'node:timers', message: FROM_TIMERS },
      { name: 'node:timers/promises', message: FROM_TIMERS },
      { name: 'node:process', importNames: ['nextTick'], message: FROM_TIMERS },
    ],
    'no-restricted-properties': ['error', { object: 'process', property: 'nextTick', message: FROM_TIMERS }],
  },
}

/** Test runners run modules in realms of their own, which can lack what Node adds to the globals of JavaScript. */
const GLOBALS_OF_NODE = {
  files: ['src/**/*.ts'],
  // The program runs in Node's own realm.
  ignores: [
    ...['src/server.ts', 'src/standalone/**', 'src/stores/open-store.ts', 'src/stores/postgres/postgres-url.ts'],
    'src/timers.ts',
  ],
  rules: {
    'no-restricted-globals': [
      'error',
      ...FAKED.map((name) => ({ name, message: FROM_TIMERS })),
      ...[
        'Buffer',
        'URL',
        'URLSearchParams',
        'TextDecoder',
        'TextEncoder',
        'AbortSignal',
        'AbortController',
        'process',
      ],
    ],
  },
}

/** What is thrown and no Error; its comment says why. */
const THROWN = [{ from: 'file', name: 'HttpError' }]

export default defineConfig(
  globalIgnores(['dist/', 'coverage/', 'bench/peers/node_modules/', 'test/peers/projects/']),
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: {
        project: ['./test/tsconfig.json', './src/standalone/paths/page/browser/tsconfig.json'],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/only-throw-error': ['error', { allow: THROWN }],
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allow: THROWN, allowThrowingUnknown: true }],
      // `Error.isError` needs Node 24.
      '@typescript-eslint/no-deprecated': [
        'error',
        { allow: [{ from: 'package', package: 'node:util/types', name: 'isNativeError' }] },
      ],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      // Under noUncheckedIndexedAccess, `!` is how an index within bounds is written.
      '@typescript-eslint/no-non-null-assertion': 'off',
      // A number in a template is what it looks like.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
    },
  },
  ...DIRECTION_OF_IMPORTS,
  TIMERS,
  GLOBALS_OF_NODE,
  {
    files: ['test/**/*.ts'],
    rules: {
      // node:test keeps the promises of its tests itself.
      '@typescript-eslint/no-floating-promises': [
        'error',
        {
          allowForKnownSafeCalls: [
            { from: 'package', package: 'node:test', name: ['test', 'suite', 'it', 'describe'] },
          ],
        },
      ],
    },
  },
)
