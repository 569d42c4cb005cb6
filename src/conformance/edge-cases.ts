import { MAX_INT64, MIN_INT64 } from '../plants/plant.ts'

/** Ids in ascending order. A store that converts them to doubles or 32-bit integers, or sorts them as text, fails. */
// prettier-ignore
export const EDGE_CASE_IDS: readonly bigint[] = [
  MIN_INT64, MIN_INT64 + 1n, -(2n ** 53n) - 2n, -(2n ** 53n) - 1n, -(2n ** 53n), -(2n ** 53n) + 1n,
  -(2n ** 31n) - 1n, -(2n ** 31n), -100n, -20n, -3n, -1n, 0n, 1n, 3n, 20n, 100n,
  2n ** 31n - 1n, 2n ** 31n, 2n ** 32n - 1n, 2n ** 32n,
  2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 53n + 2n, 2n ** 63n - 1025n, MAX_INT64 - 1n, MAX_INT64,
]

/** Strings that encodings, databases and drivers are known to change or misinterpret. */
// prettier-ignore
export const EDGE_CASE_TEXTS: readonly string[] = [
  '',
  ' \t fern \t ',
  '"quotes", \'quotes\', `quotes`',
  '\\ \\\\ \\n \\x41 \\u0041 \\',
  'lines\nlines\rlines\r\nlines\u0085lines\u2028lines\u2029',
  '\u0001\u0002\u0007\b\v\f\u001a\u001b\u001f\u007f\u0080\u009f',
  'null', 'undefined', 'NaN', '0', '{"name":"fern"}', '[]',
  '\'; DROP TABLE plants; --', '$1 ? :id @id %s %d ${id}', '100 %_',
  // Each of these strings becomes identical to a different string after Unicode normalization or case folding.
  'Caf\u00e9', 'Cafe\u0301', 'a\u0323\u0307', 'a\u0307\u0323', '\u212b', '\u1112\u1161\u11ab', '\ufb01',
  'stra\u00dfe', 'STRASSE', '\u0130\u0131',
  '\ufefffern\ufeff', '\ufffd', '\ufffe\uffff', '\ufdd0', '\ud7ff\ue000',
  '\u05d0\u202e\u0627', '\u{1f335}', '\u{1f468}\u200d\u{1f33e}', '\u{10000}\u{1fffe}\u{10ffff}',
]

/** Strings of 65,536 bytes of UTF-8, the default `maxBodyBytes`, in characters of one, three and four bytes. */
// prettier-ignore
export const LONG_TEXTS: readonly string[] = [
  'x'.repeat(65_536), '\n'.repeat(65_536), `\n${'\u690d'.repeat(21_845)}`, '\u{1f335}'.repeat(16_384),
]

/** 1,998 bytes of UTF-8 without a repeated character, so that no database index can compress them. */
const LONG_OWNER = String.fromCodePoint(...Array.from({ length: 666 }, (_, i) => 0x4e00 + i))

/** Owners that a broken store might misinterpret or confuse with each other. */
// prettier-ignore
export const EDGE_CASE_OWNERS: readonly string[] = [
  'a', 'A', 'a ', ' a', 'aa', 'ab', 'a1', 'a\n', 'a%', 'a_', 'a*', 'a:', 'a/b', 'a\'b', 'a"b', 'a\\b',
  '\u00e9', 'e\u0301', '\u{1f335}', '\u{1f336}', '\uffff', '\ufeff', '\ufeffa', '0', 'null', '__proto__', 'constructor',
  `${LONG_OWNER}ab`, `${LONG_OWNER}ac`,
]

/** Every Unicode character that a string can contain, in strings of at most 64 KiB of UTF-8. */
export const ALL_CHARACTERS: readonly string[] = Array.from({ length: 0x110000 / 0x4000 }, (_, block) => {
  const codePoints = Array.from({ length: 0x4000 }, (_, i) => block * 0x4000 + i)
  return String.fromCodePoint(...codePoints).replace(/[\0\p{Surrogate}]/gu, '')
})
