import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { mutantsOf } from './mutants.ts'

const ROWS: readonly (readonly [source: string, ...mutated: string[]])[] = [
  ['x = a === b', ';', 'x = a !== b'],
  ['x = a < b', ';', 'x = a <= b', 'x = a >= b'],
  ['x = a && b', ';', 'x = a || b', 'x = true && b', 'x = a && true'],
  ['x = a || b', ';', 'x = a && b', 'x = false || b', 'x = a || false'],
  ['if (a) b()', 'if (true) b()', 'if (false) b()', 'if (a) ;'],
  ['while (a) b()', 'while (false) b()', 'while (a) ;'],
  ['const x = a ? b : c', 'const x = true ? b : c', 'const x = false ? b : c'],
  ['const x = !a', 'const x = a'],
  ['a++', ';', '--a'],
  ["const x = ['']", 'const x = []', "const x = ['mutant']"],
  ["const x = { a: 'b' }", 'const x = {}', "const x = { a: '' }"],
  ['const x = `a${b}`', 'const x = ``'],
  ['const x = /^a$/u', 'const x = /a$/u', 'const x = /^a/u'],
  ['const x = a?.b', 'const x = a.b'],
  ['const x = a?.(b)', 'const x = a(b)'],
  ['const x = Math.min(a, b)', 'const x = Math.max(a, b)'],
  ['const x = a.toString()'],
  ['function f() { return a }', 'function f() { return undefined }'],
  ['function f() { a(); b(); }', 'function f() {}', 'function f() { ; b(); }', 'function f() { a(); ; }'],
  ['throw a', ';'],
  ['function f() { return undefined }'],
  ["import a from 'b'"],
  ["type A = 'a' | 'b'"],
]

suite('mutates', () => {
  for (const [source, ...mutated] of ROWS) {
    test(source, () => {
      assert.deepEqual(
        mutantsOf('src/a.ts', source).map((mutant) => mutant.mutated),
        mutated,
      )
    })
  }
})

test('says where a mutant is, and what becomes of the file', () => {
  assert.deepEqual(mutantsOf('src/a.ts', 'function f() {\n  return a\n}\n'), [
    {
      file: 'src/a.ts',
      line: 2,
      original: 'return a',
      mutated: 'return undefined',
      source: 'function f() {\n  return undefined\n}\n',
    },
  ])
})
