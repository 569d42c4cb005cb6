import type { TableInspection } from '../../../src/stores/postgres/table-inspection.ts'
import type { ConnectionPool, Query, QueryResult } from '../../../src/stores/postgres/postgres-store.ts'

/** The inspection result of a server and a table that the store can use. */
export const VALID_INSPECTION: TableInspection = {
  isReadOnly: false,
  serverEncoding: 'UTF8',
  clientEncoding: 'UTF8',
  hasForeignTables: false,
  schema: 'public',
  currentSchema: 'public',
  problems: '',
  outdated: null,
  databaseVersion: null,
  mayCommitEarly: false,
  isUnlogged: false,
  hasRowSecurity: false,
  collation: null,
}

/** Creates the query result of an inspection. */
export function createInspectionResult(overrides: Partial<TableInspection> = {}): QueryResult {
  return { rows: [[JSON.stringify({ ...VALID_INSPECTION, ...overrides })]], rowCount: 1 }
}

/** Creates a pool with usable connections. @param respond returns the results of all queries except the inspection */
export function createMockPool(respond: (query: Query) => Promise<QueryResult>): ConnectionPool {
  const query = async (request: Query): Promise<QueryResult> => {
    if (request.text.includes('server_encoding')) return createInspectionResult()
    return respond(request)
  }
  return { connect: () => Promise.resolve({ query, release: () => undefined, on: () => undefined }) }
}
