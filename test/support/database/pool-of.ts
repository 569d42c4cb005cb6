import type { ConnectionPool, Query, QueryResult } from '../../../src/stores/postgres/postgres-store.ts'

/** A pool whose connections are fit for use, and answer what a function does. */
export function poolOf(answer: (query: Query) => Promise<QueryResult>): ConnectionPool {
  const query = async (asked: Query): Promise<QueryResult> => {
    if (asked.text.includes('server_encoding')) return { rows: [['off', 'UTF8', 'UTF8']], rowCount: 1 }
    return answer(asked)
  }
  return { connect: () => Promise.resolve({ query, release: () => undefined, on: () => undefined }) }
}
