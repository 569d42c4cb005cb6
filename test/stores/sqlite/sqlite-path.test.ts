import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import process from 'node:process'
import { suite, test } from 'node:test'
import { parseSqlitePath } from '../../../src/stores/sqlite/sqlite-path.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { createTempDirectory } from '../../support/temp-files.ts'

suite('parseSqlitePath returns the same file that SQLite would open', () => {
  for (const [path, file, canCreate] of [
    ['plants.db', 'plants.db', true],
    ['/var/lib/my plants/ä%20#1.db', '/var/lib/my plants/ä%20#1.db', true],
    ['a\u200d\u{1f331}.db', 'a\u200d\u{1f331}.db', true],
    ['file.db', 'file.db', true],
    ['file:plants.db', 'plants.db', true],
    ['file:/a/my%20plants%3F.db', '/a/my plants?.db', true],
    ['file:///a/plants.db', '/a/plants.db', true],
    ['file://localhost/a/plants.db?cache=private', '/a/plants.db', true],
    ['file:plants.db?mode=rwc', 'plants.db', true],
    ['file:plants.db?mode=rw', 'plants.db', false],
    ['file:plants.db?cache=private&mode=ro#x', 'plants.db', false],
    [':memory:', undefined, true],
    ['file::memory:', undefined, true],
    ['file:plants?mode=memory&cache=shared', undefined, true],
    ['file:/plants?vfs=memdb', undefined, true],
  ] as const) {
    test(path, () => assert.deepEqual(parseSqlitePath(path), { file, canCreate: canCreate }))
  }
})

const CONTROL = 'contains a control character'
const END = 'begins or ends with white space, an invisible character or a quote'
const INVISIBLE = 'contains an invisible character'
const REPLACED = 'contains U+FFFD, which replaces bytes that are not UTF-8'
const SCHEME = 'begins with a URL scheme; use a plain path, or a URI that begins with "file:"'
const PARAMETER = 'contains "?"; only a file: URI can have parameters'
const HOST = 'contains a host; use file:/path or file:///path'

suite('sqliteStore rejects a path that SQLite would accept as the name of a new file:', () => {
  for (const [path, shown, problem] of [
    ['plants.db\r', String.raw`"plants.db\r"`, CONTROL],
    ['plants.db\r\n', String.raw`"plants.db\r\n"`, CONTROL],
    ['plants\t.db', String.raw`"plants\t.db"`, CONTROL],
    ['plants.db\0', String.raw`"plants.db\u0000"`, CONTROL],
    ['plants\u007f.db', String.raw`"plants\u{7f}.db"`, CONTROL],
    ['plants\u0085.db', String.raw`"plants\u{85}.db"`, CONTROL],
    ['plants\ufffd.db', '"plants\ufffd.db"', REPLACED],
    ['file:plants%EF%BF%BD.db', '"file:plants%EF%BF%BD.db"', REPLACED],
    ['a.db\u2028b.db', String.raw`"a.db\u{2028}b.db"`, CONTROL],
    ['plants\ud800.db', String.raw`"plants\ud800.db"`, CONTROL],
    ['\u001b[1mplants.db', String.raw`"\u001b[1mplants.db"`, CONTROL],
    [' plants.db', '" plants.db"', END],
    ['plants.db ', '"plants.db "', END],
    ['\u00a0plants.db', String.raw`"\u{a0}plants.db"`, END],
    ['\ufeffplants.db', String.raw`"\u{feff}plants.db"`, END],
    ['plants.db\u200b', String.raw`"plants.db\u{200b}"`, END],
    ['"plants.db"', String.raw`"\"plants.db\""`, END],
    ["plants.db'", `"plants.db'"`, END],
    ['`plants.db', '"`plants.db"', END],
    ['“plants.db”', '"“plants.db”"', END],
    [':memory: ', '":memory: "', END],
    ['plants\u200b.db', String.raw`"plants\u{200b}.db"`, INVISIBLE],
    ['data/\ufeffplants.db', String.raw`"data/\u{feff}plants.db"`, INVISIBLE],
    ['file:plants%E2%81%A0.db', '"file:plants%E2%81%A0.db"', INVISIBLE],
    ['sqlite:plants.db', '"sqlite:plants.db"', SCHEME],
    ['sqlite://plants.db', '"sqlite://plants.db"', SCHEME],
    ['FILE:plants.db', '"FILE:plants.db"', SCHEME],
    ['plants.db?mode=ro', '"plants.db?mode=ro"', PARAMETER],
    [':memory:?cache=shared', '":memory:?cache=shared"', PARAMETER],
    ['file:plants.db\r', String.raw`"file:plants.db\r"`, CONTROL],
    ['file:plants.db%0D', '"file:plants.db%0D"', CONTROL],
    ['file:plants.db%00x', '"file:plants.db%00x"', CONTROL],
    ['file:plants.db%20?mode=rwc', '"file:plants.db%20?mode=rwc"', END],
    ['file:"plants.db"', String.raw`"file:\"plants.db\""`, END],
    ['file:plants.db?mode=ro ', '"file:plants.db?mode=ro "', END],
    ['file:plants%zz.db', '"file:plants%zz.db"', 'has a malformed percent-escape'],
    ['file:plants%FF.db', '"file:plants%FF.db"', 'has a malformed percent-escape'],
    ['file://plants.db', '"file://plants.db"', HOST],
    ['file://host/plants.db', '"file://host/plants.db"', HOST],
    ['file:', '"file:"', 'contains no file name'],
    ['file://localhost', '"file://localhost"', 'contains no file name'],
    ['file:?mode=rwc', '"file:?mode=rwc"', 'contains no file name'],
  ] as const) {
    const attack = problem === REPLACED ? ' (Unicode replacement collision)' : ''
    test(shown + attack, (t) => {
      const folder = createTempDirectory(t)
      const before = process.cwd()
      t.after(() => process.chdir(before))
      process.chdir(folder)
      assert.throws(() => sqliteStore(path), new TypeError(`SQLite path ${shown} ${problem}`))
      assert.deepEqual(readdirSync(folder), [])
    })
  }
})
