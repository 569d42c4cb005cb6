import { defineConfig, globalIgnores } from 'eslint/config'
import tseslint from 'typescript-eslint'

const MESSAGE =
  'Imports must point in this direction: server → standalone → plant-store → operations → http → plants ← stores.'

/** The service: the modules that `plant-store.ts` consists of. */
const SERVICE = ['http/', 'plants/', 'operations.ts', 'options.ts', 'plant-store.ts', 'stores/memory-store.ts']

/**
 * Restricts imports from outside the files' own folder to the given modules. The path of a folder ends with a slash.
 * @param up the relative path from the files to src; all files have the same depth
 * @param types modules from which only types can be imported
 */
function allowImports(files, up, modules, types = []) {
  const anyOf = (paths) => `(?:${paths.join('|').replaceAll('.', '\\.')})`
  const src = `^${anyOf([up])}`
  const patterns = [{ regex: `${src}(?!${anyOf(['version.ts', ...modules, ...types])})`, message: MESSAGE }]
  if (types.length > 0) patterns.push({ regex: `${src}${anyOf(types)}`, message: MESSAGE, allowTypeImports: true })
  return { files, rules: { '@typescript-eslint/no-restricted-imports': ['error', { patterns }] } }
}

const IMPORT_DIRECTION = [
  allowImports(['src/plants/*.ts'], '../', ['plants/']),
  allowImports(['src/stores/*.ts', 'src/conformance/*.ts'], '../', ['plants/', 'stores/']),
  allowImports(['src/stores/*/*.ts'], '../../', ['plants/'], ['stores/']),
  allowImports(['src/http/*.ts'], '../', ['plants/']),
  allowImports(['src/http-server/*.ts'], '../', ['http/']),
  allowImports(['src/operations.ts'], './', ['http/', 'plants/'], ['options.ts']),
  allowImports(['src/openapi/*.ts'], '../', ['http/', 'plants/', 'operations.ts']),
  allowImports(['src/options.ts', 'src/plant-store.ts'], './', SERVICE),
  allowImports(['src/index.ts'], './', [...SERVICE, 'openapi/']),
  allowImports(['src/standalone/*.ts'], '../', [...SERVICE, 'openapi/', 'http-server/', 'stores/open-store.ts']),
  allowImports(['src/standalone/*/*.ts'], '../../', [
    ...SERVICE,
    'http-server/',
    'stores/open-store.ts',
    'standalone/log.ts',
  ]),
  allowImports(['src/server.ts'], './', ['standalone/']),
  // Both run in browsers. The client is also a module of its own, so it imports only types.
  allowImports(['src/client/*.ts'], '../', [], ['plants/']),
  allowImports(['src/web-ui/*.ts'], '../', ['client/']),
  {
    files: ['src/client/*.ts', 'src/web-ui/*.ts'],
    rules: {
      'no-restricted-imports': ['error', { patterns: [{ regex: '^(?!\\.)', message: 'It runs in browsers.' }] }],
    },
  },
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

/** Classes that are thrown although they don't extend Error; the comment of HttpError explains why. */
const THROWABLE = [{ from: 'file', name: 'HttpError' }]

export default defineConfig(
  globalIgnores(['dist/', 'coverage/', 'test/peers/projects/']),
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: {
        project: ['./test/tsconfig.json', './src/web-ui/tsconfig.json'],
        tsconfigRootDir: import.meta.dirname,
      },
    },
    rules: {
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      // These rules take a quarter of the time, and this project has no enums.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      '@typescript-eslint/no-unnecessary-type-parameters': 'off',
      '@typescript-eslint/only-throw-error': ['error', { allow: THROWABLE }],
      '@typescript-eslint/prefer-promise-reject-errors': ['error', { allow: THROWABLE, allowThrowingUnknown: true }],
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
  ...IMPORT_DIRECTION,
  {
    files: ['test/**/*.ts'],
    rules: {
      // These rules take a sixth of the time of lint. In a test, the mistakes that they find make it fail, or do no harm.
      '@typescript-eslint/no-deprecated': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
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
