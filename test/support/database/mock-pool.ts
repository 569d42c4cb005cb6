import type { TableInspection } from '../../../src/stores/postgres/table-inspection.ts'
import type { ConnectionPool, Query, QueryResult } from '../../../src/stores/postgres/postgres-store.ts'

/** What a look at a connection returns whose server and table the store can use. */
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

/** The answer to a look. */
export function createInspectionResult(overrides: Partial<TableInspection> = {}): QueryResult {
  return { rows: [[JSON.stringify({ ...VALID_INSPECTION, ...overrides })]], rowCount: 1 }
}

/** A pool whose connections are fit for use, and answer what a function does. */
export function createMockPool(respond: (query: Query) => Promise<QueryResult>): ConnectionPool {
  const query = async (request: Query): Promise<QueryResult> => {
    if (request.text.includes('server_encoding')) return createInspectionResult()
    return respond(request)
  }
  return { connect: () => Promise.resolve({ query, release: () => undefined, on: () => undefined }) }
}
