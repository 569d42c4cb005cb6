import { UnsuitableDatabaseError } from './errors.ts'
import { RAW_TEXT_TYPES, type Connection } from './pool.ts'
import { DATABASE_COLLATION_VERSION, INSPECT_TABLE, type TableInspection } from './table-inspection.ts'

/**
 * Checks that the server of a connection is writable, and that the store can use the table.
 * @param schema the schema in which an earlier check found the table; null if the table hasn't been found yet
 * @throws UnsuitableDatabaseError if the database must be changed before the store can use it
 * @throws Error if the check failed for a reason that might be temporary
 */
export async function checkConnection(connection: Connection, schema: string | null): Promise<TableInspection> {
  const inspection = JSON.parse((await queryValue(connection, INSPECT_TABLE, [schema]))!) as TableInspection
  if (inspection.isReadOnly)
    throw new Error('The server is read-only: it is a standby, or default_transaction_read_only is on.')
  for (const [side, encoding] of Object.entries({
    server: inspection.serverEncoding,
    client: inspection.clientEncoding,
  })) {
    if (encoding !== 'UTF8') throw new UnsuitableDatabaseError(`The ${side}_encoding is ${encoding}, but must be UTF8.`)
  }
  if (inspection.problems !== '') {
    const message = `The table ${inspection.schema}.plant_store_plants cannot be used: ${inspection.problems}.`
    throw new UnsuitableDatabaseError(message)
  }
  if ((schema ?? inspection.schema ?? inspection.currentSchema) === null) {
    throw new Error('The search_path of the session contains no schema that exists and that the role can use.')
  }
  const outdatedCollation = await findOutdatedCollation(connection, inspection)
  if (outdatedCollation !== null) {
    // Not an UnsuitableDatabaseError, which would stop the standalone server. The server can wait until the indexes
    // have been rebuilt.
    const table = `${inspection.schema}.plant_store_plants`
    throw new Error(
      `The sort order of ${outdatedCollation} may have changed since the indexes of ${table} ` +
        'were built, so plants could be missing from lists, or be created twice. Rebuild the indexes and refresh the ' +
        'collation version, or give the column owner the collation C.',
    )
  }
  return inspection
}

async function findOutdatedCollation(connection: Connection, inspection: TableInspection): Promise<string | null> {
  if (inspection.outdated !== null) return `the collation ${inspection.outdated}`
  const recorded = inspection.databaseVersion
  if (recorded === null) return null
  const actual = await queryValue(connection, DATABASE_COLLATION_VERSION, [])
  if (actual === recorded) return null
  return `the database's collation (recorded version ${recorded}, actual version ${actual})`
}

async function queryValue(connection: Connection, text: string, values: unknown[]): Promise<string | null> {
  const { rows } = await connection.query({ name: undefined, text, values, rowMode: 'array', types: RAW_TEXT_TYPES })
  return rows[0]![0] as string | null
}

/** Returns warnings for the operator about a table that the store can use. */
export function warningsOf({ schema, isUnlogged, hasRowSecurity, collation }: TableInspection): string[] {
  const table = `${schema}.plant_store_plants`
  const warnings: string[] = []
  if (isUnlogged) warnings.push(`The table ${table} is unlogged, so a server crash empties it.`)
  if (hasRowSecurity) {
    warnings.push(
      `Row-level security applies to this role in the table ${table}. It can hide plants or reject new ones.`,
    )
  }
  if (collation !== null) {
    warnings.push(
      `The column owner of ${table} has the collation ${collation}, not C. Its sort order can change with an ` +
        'update of the operating system; plants are then missing until the indexes are rebuilt.',
    )
  }
  return warnings
}
