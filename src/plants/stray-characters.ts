// Parts of regular expressions with the flag `u`.

/** Invisible characters that are often copied from web pages. Others, such as joiners, can be part of a word. */
export const INVISIBLE_CHARACTERS = '[\\u00ad\\u200b\\u2060\\ufeff]'

/** White space, invisible characters and quotes at either end, where shells, Compose files and copying leave them. */
export const LEADING_OR_TRAILING_STRAY = '^[\\s\\p{Cf}\\p{Pi}\\p{Pf}\'"`]|[\\s\\p{Cf}\\p{Pi}\\p{Pf}\'"`]$'
