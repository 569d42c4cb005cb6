/**
 * An open database: a `DatabaseSync` from `node:sqlite` or a `Database` from better-sqlite3. Only the methods that the
 * store uses are declared.
 */
export interface SqliteHandle {
  /** Executes one or more SQL statements without returning rows. Throws if a statement fails. */
  exec(sql: string): unknown
  /** Prepares a statement. The store keeps using the statement until the store is closed. */
  prepare(sql: string): SqliteStatement
  /** Closes the database. The store calls this only if it opened the database itself. */
  close(): unknown
}

/**
 * The methods of a prepared statement that the store uses. Every parameter is a {@link SqliteValue}; the types are
 * `any` because those of better-sqlite3 aren't compatible with anything narrower.
 */
/* eslint-disable @typescript-eslint/no-explicit-any */
export interface SqliteStatement {
  /** Executes the statement. Throws if it fails. */
  run(...values: any[]): {
    /** The number of changed rows. */
    readonly changes: number | bigint
  }
  /** Executes a query and returns all rows. */
  all(...values: any[]): unknown[]
  /** Executes a query and returns an iterator over its rows. */
  iterate(...values: any[]): Iterable<unknown>
  /** Makes `node:sqlite` return integers as bigints. */
  setReadBigInts?(enabled: boolean): unknown
  /** Makes better-sqlite3 return integers as bigints. */
  safeIntegers?(enabled: boolean): unknown
  /** Makes `node:sqlite` return rows as arrays. */
  setReturnArrays?(enabled: boolean): unknown
  /** Makes better-sqlite3 return rows as arrays. */
  raw?(enabled: boolean): unknown
}
/* eslint-enable @typescript-eslint/no-explicit-any */

/**
 * A value that the store binds to a parameter. `undefined` isn't included, because drivers and their versions treat it
 * differently.
 */
export type SqliteValue = string | number | bigint | null

/**
 * Prepares a statement that returns integers as bigints. As numbers, ids beyond 2^53 would be rounded, or cause an
 * error.
 */
export function prepareWithBigInts(handle: SqliteHandle, sql: string): SqliteStatement {
  const statement = handle.prepare(sql)
  statement.setReadBigInts?.(true)
  statement.safeIntegers?.(true)
  return statement
}

/** Returns the columns of the first row. The handle's options decide whether rows are objects or arrays. */
export function firstRow(rows: unknown): unknown[] {
  if (!Array.isArray(rows)) throw new Error('the driver must return rows synchronously, as node:sqlite does')
  return Object.values(rows[0] as object)
}

/**
 * Checks that a driver returns integers as bigints.
 * @returns whether the driver's iterators throw when a query fails. Deno's iterators just end, as if there were no more
 *   rows
 * @throws Error if the driver isn't supported
 */
export function checkDriver(handle: SqliteHandle): boolean {
  const [integer] = firstRow(prepareWithBigInts(handle, 'SELECT 9007199254740993').all())
  if (integer !== 9007199254740993n) throw new Error('the driver must return integers as bigint, as node:sqlite does')
  try {
    // SQLite detects the malformed JSON only while it executes the query.
    Array.from(handle.prepare("SELECT json('{')").iterate())
    return false
  } catch {
    return true
  }
}

/** Returns the absolute path of the database file, or '' if there is none. Doesn't read the file. */
export const databasePathOf = (handle: SqliteHandle): string =>
  firstRow(handle.prepare('PRAGMA database_list').all())[2] as string

export const readPragma = (handle: SqliteHandle, pragma: string): unknown =>
  firstRow(handle.prepare(`PRAGMA main.${pragma}`).all())[0]
