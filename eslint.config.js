import { defineConfig, globalIgnores } from 'eslint/config'
import tseslint from 'typescript-eslint'
import noImportCycles from './test/support/no-import-cycles.js'

/** Modules that don't depend on the service, so every other module can import them. */
const BASE = ['scheduler.ts', 'maybe-promise.ts', 'option-checks.ts', 'timers.ts', 'version.ts']
const CORE = ['http/', 'openapi/', 'plants/', 'operations.ts', 'options.ts', 'plant-store.ts']

/**
 * Restricts imports from outside the files' own folder to the given paths. The path of a folder ends with a slash.
 * @param up the relative path from the files to src; all files have the same depth
 * @param types paths from which only types can be imported
 */
function allowImports(files, up, modules, types = []) {
  const anyOf = (paths) => `(?:${paths.join('|').replaceAll('.', '\\.')})`
  const src = `^${anyOf([up])}`
  const allowed = [...BASE, ...modules]
  const message =
    'Imports must point in this direction: server → standalone → plant-store → operations → http → plants ← stores.'
  const patterns = [{ regex: `${src}(?!${anyOf([...allowed, ...types])})`, message }]
  if (types.length > 0) {
    patterns.push({ regex: `${src}(?!${anyOf(allowed)})${anyOf(types)}`, message, allowTypeImports: true })
  }
  if (up === '../../') {
    const message = "Subfolders can't import from each other. Move shared code to the parent folder."
    patterns.push({ regex: '^\\.\\./[a-z-]+/', message })
  }
  return { files, rules: { '@typescript-eslint/no-restricted-imports': ['error', { patterns }] } }
}

function allowFolderImports(folder, modules, types) {
  return [
    allowImports([`src/${folder}/*.ts`], '../', modules, types),
    allowImports([`src/${folder}/*/*.ts`], '../../', modules, types),
  ]
}

const IMPORT_DIRECTION = [
  allowImports(['src/*.ts'], './', []),
  ...allowFolderImports('plants', []),
  ...allowFolderImports('stores', ['plants/']),
  ...allowFolderImports('conformance', ['plants/']),
  {
    files: ['src/client/**/*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^(?!\\./)',
              allowTypeImports: true,
              message: 'The client also runs in browsers, so it has no dependencies.',
            },
          ],
        },
      ],
    },
  },
  ...allowFolderImports(
    'http',
    ['plants/int64.ts', 'plants/plant.ts', 'plants/store.ts', 'plants/text.ts'],
    ['plants/'],
  ),
  allowImports(['src/operations.ts'], './', ['http/', 'plants/']),
  ...allowFolderImports('openapi', ['http/', 'plants/', 'operations.ts']),
  allowImports(['src/options.ts', 'src/plant-store.ts', 'src/index.ts'], './', [...CORE, 'stores/memory-store.ts']),
  ...allowFolderImports('http-server', ['http/']),
  ...allowFolderImports('standalone', [
    ...CORE,
    'http-server/',
    'stores/batch-size.ts',
    'stores/store-metrics.ts',
    'stores/lookup.ts',
    'stores/open-store.ts',
  ]),
  allowImports(['src/server.ts'], './', ['standalone/']),
  {
    files: ['src/**/*.ts'],
    // server.ts must run on any Node version to report an unsupported one. open-store.ts loads only the requested
    // store.
    ignores: ['src/server.ts', 'src/stores/open-store.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: 'ImportExpression[source.value=/^\\./]',
          message: "ESLint can't check the direction of dynamic imports.",
        },
      ],
    },
  },
]

/** Globals that fake timers replace in the tests of a host. */
const FAKEABLE_GLOBALS = [
  ...['setTimeout', 'setInterval', 'setImmediate', 'clearTimeout', 'clearInterval', 'clearImmediate'],
  ...['queueMicrotask', 'performance'],
]
const TIMERS_MESSAGE = "Import it from src/timers.ts, which fake timers can't replace."

const TIMERS = {
  files: ['src/**/*.ts'],
  // These files run in browsers.
  ignores: ['src/timers.ts', 'src/client/**', 'src/standalone/paths/page/browser/**'],
  rules: {
    'no-restricted-globals': ['error', ...FAKEABLE_GLOBALS.map((name) => ({ name, message: TIMERS_MESSAGE }))],
    'no-restricted-imports': [
      'error',
      { name: 'node:timers', message: TIMERS_MESSAGE },
      { name: 'node:timers/promises', message: TIMERS_MESSAGE },
      { name: 'node:process', importNames: ['nextTick'], message: TIMERS_MESSAGE },
    ],
    'no-restricted-properties': ['error', { object: 'process', property: 'nextTick', message: TIMERS_MESSAGE }],
  },
}

/** Test runners can load modules in separate realms that lack Node's globals, so modules must import them. */
const NODE_GLOBALS = {
  files: ['src/**/*.ts'],
  // The standalone server always runs in Node's main realm.
  ignores: [
    ...['src/server.ts', 'src/standalone/**', 'src/stores/open-store.ts', 'src/stores/postgres/postgres-url.ts'],
    'src/timers.ts',
    'src/client/**',
  ],
  rules: {
    'no-restricted-globals': [
      'error',
      ...FAKEABLE_GLOBALS.map((name) => ({ name, message: TIMERS_MESSAGE })),
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

/** Classes that are thrown although they don't extend Error; the comment of HttpError explains why. */
const THROWABLE = [{ from: 'file', name: 'HttpError' }]

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
      '@typescript-eslint/only-throw-error': ['error', { allow: THROWABLE }],
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allow: THROWABLE, allowThrowingUnknown: true }],
      // `isNativeError` is deprecated in favor of `Error.isError`, which requires Node 24.
      '@typescript-eslint/no-deprecated': [
        'error',
        { allow: [{ from: 'package', package: 'node:util/types', name: 'isNativeError' }] },
      ],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      // With noUncheckedIndexedAccess, every access by index needs `!`, even if the index is known to be within bounds.
      '@typescript-eslint/no-non-null-assertion': 'off',
      // Numbers have the same form in a template as in code.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
    },
  },
  {
    files: ['**/*.ts', '**/*.js'],
    plugins: { local: { rules: { 'no-import-cycles': noImportCycles } } },
    rules: { 'local/no-import-cycles': 'error' },
  },
  ...IMPORT_DIRECTION,
  TIMERS,
  NODE_GLOBALS,
  {
    files: ['test/**/*.ts'],
    rules: {
      // node:test itself handles the promises that these functions return.
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
