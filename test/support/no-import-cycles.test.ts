import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test } from 'node:test'
import { Linter, type Rule } from 'eslint'
import tseslint from 'typescript-eslint'
import { createTempDirectory } from './temp-files.ts'

// TypeScript would require a declaration file for a static import.
const { default: rule } = (await import(import.meta.resolve('./no-import-cycles.js'))) as { default: Rule.RuleModule }

const CONFIG: Linter.Config = {
  files: ['**/*.ts', '**/*.js'],
  languageOptions: { parser: tseslint.parser },
  plugins: { local: { rules: { 'no-import-cycles': rule } } },
  rules: { 'local/no-import-cycles': 'error' },
}

type Files = Readonly<Record<string, string>>

function writeFiles(directory: string, files: Files): void {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
}

/** Applies the rule to all files in a directory. Returns each message after the location of the import. */
function lint(cwd: string): string[] {
  const linter = new Linter({ cwd })
  const names = readdirSync(cwd)
    .filter((name) => /\.[jt]s$/.test(name))
    .sort()
  return names.flatMap((name) => {
    const filename = join(cwd, name)
    const problems = linter.verify(readFileSync(filename, 'utf8'), CONFIG, { filename })
    return problems.map(({ line, column, message }) => `${name}:${line}:${column} ${message}`)
  })
}

const CASES: readonly [name: string, files: Files, messages: readonly string[]][] = [
  [
    'reports both imports of two files that import each other',
    { 'a.ts': "import './b.ts'", 'b.ts': "\nimport { a } from './a.ts'" },
    ['a.ts:1:8 Import cycle: a.ts → b.ts → a.ts', 'b.ts:2:19 Import cycle: b.ts → a.ts → b.ts'],
  ],
  [
    'reports a cycle of three files with type imports',
    {
      'a.ts': "import type { B } from './b.ts'",
      'b.ts': "import { type C } from './c.ts'",
      'c.ts': "export type A = import('./a.ts').A",
    },
    [
      'a.ts:1:24 Import cycle: a.ts → b.ts → c.ts → a.ts',
      'b.ts:1:24 Import cycle: b.ts → c.ts → a.ts → b.ts',
      'c.ts:1:24 Import cycle: c.ts → a.ts → b.ts → c.ts',
    ],
  ],
  [
    'reports a cycle of re-exports',
    { 'a.ts': "export { b } from './b.ts'", 'b.ts': "export * from './c.ts'", 'c.ts': "export * as a from './a.ts'" },
    [
      'a.ts:1:19 Import cycle: a.ts → b.ts → c.ts → a.ts',
      'b.ts:1:15 Import cycle: b.ts → c.ts → a.ts → b.ts',
      'c.ts:1:20 Import cycle: c.ts → a.ts → b.ts → c.ts',
    ],
  ],
  [
    'reports a cycle of dynamic imports',
    { 'a.ts': "const load = () => import('./b.ts')", 'b.ts': "await import('./a.ts')" },
    ['a.ts:1:27 Import cycle: a.ts → b.ts → a.ts', 'b.ts:1:14 Import cycle: b.ts → a.ts → b.ts'],
  ],
  ['reports a file that imports itself', { 'a.ts': "import './a.ts'" }, ['a.ts:1:8 Import cycle: a.ts → a.ts']],
  [
    'reports the shortest cycle for each import',
    {
      'a.ts': "import './b.ts'\nimport './c.ts'",
      'b.ts': "import './c.ts'\nimport './a.ts'",
      'c.ts': "import './a.ts'",
    },
    [
      'a.ts:1:8 Import cycle: a.ts → b.ts → a.ts',
      'a.ts:2:8 Import cycle: a.ts → c.ts → a.ts',
      'b.ts:1:8 Import cycle: b.ts → c.ts → a.ts → b.ts',
      'b.ts:2:8 Import cycle: b.ts → a.ts → b.ts',
      'c.ts:1:8 Import cycle: c.ts → a.ts → c.ts',
    ],
  ],
  [
    'reports only files that are part of a cycle',
    { 'a.ts': "import './b.ts'\nimport './c.ts'", 'b.ts': "import './c.ts'", 'c.ts': "import './c.ts'" },
    ['c.ts:1:8 Import cycle: c.ts → c.ts'],
  ],
  [
    'ignores imports in comments, strings and regular expressions',
    {
      'a.ts': "// import './b.ts'\nconst quote = /`/\nconst text = `import './b.ts'`\nimport './c.ts'",
      'b.ts': "import './a.ts'",
      'c.ts':
        '/** @import { A } from "./b.ts" */\nconst quote = /`/\nimport("./a.ts")\nconst text = \'import "./b.ts"\'',
    },
    ['a.ts:4:8 Import cycle: a.ts → c.ts → a.ts', 'c.ts:3:8 Import cycle: c.ts → a.ts → c.ts'],
  ],
  [
    'accepts imports of packages, folders, JSON and missing files',
    {
      'a.ts': "import 'eslint'\nimport './folder'\nimport './missing.ts'\nimport './data.json'\nimport './b.js'",
      'b.js': "import './a.ts'",
      'data.json': '{ "import": "./a.ts" }',
    },
    ['a.ts:5:8 Import cycle: a.ts → b.js → a.ts', 'b.js:1:8 Import cycle: b.js → a.ts → b.js'],
  ],
]

suite('no-import-cycles', () => {
  for (const [name, files, messages] of CASES) {
    test(name, (t) => {
      const directory = createTempDirectory(t)
      mkdirSync(join(directory, 'folder'))
      writeFiles(directory, files)
      assert.deepEqual(lint(directory), messages)
    })
  }

  test('reads a file again after it has changed', (t) => {
    const directory = createTempDirectory(t)
    writeFiles(directory, { 'a.ts': "import './b.ts'", 'b.ts': '' })
    assert.deepEqual(lint(directory), [])
    writeFiles(directory, { 'b.ts': "import './a.ts'" })
    // Both writes can happen in the same tick of the file system's clock.
    utimesSync(join(directory, 'b.ts'), 1, 1)
    assert.deepEqual(lint(directory), [
      'a.ts:1:8 Import cycle: a.ts → b.ts → a.ts',
      'b.ts:1:8 Import cycle: b.ts → a.ts → b.ts',
    ])
  })
})
