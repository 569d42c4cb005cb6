import type { Look } from '../../../src/stores/postgres/statements.ts'
import type { ConnectionPool, Query, QueryResult } from '../../../src/stores/postgres/postgres-store.ts'

/** What a look at a connection returns whose server and table the store can use. */
export const LOOK: Look = {
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
export function lookResult(own: Partial<Look> = {}): QueryResult {
  return { rows: [[JSON.stringify({ ...LOOK, ...own })]], rowCount: 1 }
}

/** A pool whose connections are fit for use, and answer what a function does. */
export function poolOf(answer: (query: Query) => Promise<QueryResult>): ConnectionPool {
  const query = async (asked: Query): Promise<QueryResult> => {
    if (asked.text.includes('server_encoding')) return lookResult()
    return answer(asked)
  }
  return { connect: () => Promise.resolve({ query, release: () => undefined, on: () => undefined }) }
}
