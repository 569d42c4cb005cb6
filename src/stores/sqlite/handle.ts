/** An open database, as far as the store uses it: `DatabaseSync` of `node:sqlite`, or `Database` of better-sqlite3. */
export interface SqliteHandle {
  /** Runs SQL that gives no rows; may be several statements. Throws if one fails. */
  exec(sql: string): unknown
  /** Prepares a statement, which the store uses as long as it is open. */
  prepare(sql: string): SqliteStatement
  /** Closes the database. The store calls it only if it opened the database itself. */
  close(): unknown
}

/**
 * A prepared statement, as far as the store uses it. It binds a {@link SqliteValue} for each parameter; the types of
 * better-sqlite3 fit only `any`.
 */
/* eslint-disable @typescript-eslint/no-explicit-any */
export interface SqliteStatement {
  /** Runs the statement. Throws if it fails. */
  run(...values: any[]): {
    /** How many rows it has changed. */
    readonly changes: number | bigint
  }
  /** Runs a query, and gives all its rows. */
  all(...values: any[]): unknown[]
  /** Runs a query, and gives its rows one by one. */
  iterate(...values: any[]): Iterable<unknown>
  /** Asks `node:sqlite` for integers as bigint. */
  setReadBigInts?(enabled: boolean): unknown
  /** Asks better-sqlite3 for integers as bigint. */
  safeIntegers?(enabled: boolean): unknown
  /** Asks `node:sqlite` for rows as arrays. */
  setReturnArrays?(enabled: boolean): unknown
  /** Asks better-sqlite3 for rows as arrays. */
  raw?(enabled: boolean): unknown
}
/* eslint-enable @typescript-eslint/no-explicit-any */

/** A value that is bound to a statement; never `undefined`, which binds differently from version to version. */
export type SqliteValue = string | number | bigint | null

/** The absolute path of a file; empty if the database has none. */
export function pathOf(handle: SqliteHandle): string {
  const [main] = handle.prepare('PRAGMA database_list').all() as [{ readonly file: string }]
  return main.file
}

export const ask = (handle: SqliteHandle, pragma: string): unknown =>
  Object.values(handle.prepare(`PRAGMA ${pragma}`).all()[0] as object)[0]
