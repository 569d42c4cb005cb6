// Sources for regular expressions with the `u` flag.

/**
 * Invisible characters that are often copied from web pages. Other invisible characters, such as joiners, may be part
 * of a word.
 */
export const INVISIBLE_CHARACTERS = '[\\u00ad\\u200b\\u2060\\ufeff]'

/**
 * White space, invisible characters and quotes at either end: leftovers from shells, Compose files or copy and paste.
 */
export const LEADING_OR_TRAILING_STRAY = '^[\\s\\p{Cf}\\p{Pi}\\p{Pf}\'"`]|[\\s\\p{Cf}\\p{Pi}\\p{Pf}\'"`]$'
