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

/** Prepares a statement that returns every integer as a bigint: as numbers, those beyond 2^53 throw or are rounded. */
export function prepareWithBigInts(handle: SqliteHandle, sql: string): SqliteStatement {
  const statement = handle.prepare(sql)
  statement.setReadBigInts?.(true)
  statement.safeIntegers?.(true)
  return statement
}

/** Returns the columns of the first row. Options of a handle decide whether rows are objects or arrays. */
export function firstRow(rows: unknown): unknown[] {
  if (!Array.isArray(rows)) throw new Error('the driver must return rows synchronously, as node:sqlite does')
  return Object.values(rows[0] as object)
}

/**
 * Checks that a driver returns integers exactly.
 * @returns whether its iterators throw when a query fails. Those of Deno end instead, as if there were no more rows
 */
export function checkDriver(handle: SqliteHandle): boolean {
  const [integer] = firstRow(prepareWithBigInts(handle, 'SELECT 9007199254740993').all())
  if (integer !== 9007199254740993n) throw new Error('the driver must return integers as bigint, as node:sqlite does')
  try {
    // This JSON text is malformed, which SQLite notices only when it runs the query.
    Array.from(handle.prepare("SELECT json('{')").iterate())
    return false
  } catch {
    return true
  }
}

/** The absolute path of the database file; empty if the database has none. Doesn't read the file. */
export const databasePathOf = (handle: SqliteHandle): string =>
  firstRow(handle.prepare('PRAGMA database_list').all())[2] as string

export const readPragma = (handle: SqliteHandle, pragma: string): unknown =>
  firstRow(handle.prepare(`PRAGMA main.${pragma}`).all())[0]
