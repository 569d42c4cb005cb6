// Operators, functions and types are qualified, because a schema in the search_path may contain others with the same
// names.

export const EQ = 'OPERATOR(pg_catalog.=)'
export const NE = 'OPERATOR(pg_catalog.<>)'
export const LT = 'OPERATOR(pg_catalog.<)'
export const GE = 'OPERATOR(pg_catalog.>=)'
export const TEXT = 'pg_catalog.text'

/**
 * A comment that makes Pgpool-II send a query to the primary. A standby might lack plants that were already
 * acknowledged. If `allow_sql_comments` is on, Pgpool-II ignores this comment, and {@link IS_VOLATILE} has the same
 * effect.
 */
export const ON_PRIMARY = '/*NO LOAD BALANCE*/'

/**
 * A condition that is always true. Because it calls a volatile function, Pgpool-II treats the query as a write: it
 * sends the query to the primary, and doesn't cache the result.
 */
export const IS_VOLATILE = '(SELECT pg_catalog.random()) IS NOT NULL'
