import type { ConnectionPool, Query, QueryResult } from '../../../src/stores/postgres/postgres-store.ts'

/** What a connection answers that is fit for use, when it is asked. */
export const FIT: readonly (string | null)[] = ['off', 'UTF8', 'UTF8', 'f', 'public', '']

/** A pool whose connections are fit for use, and answer what a function does. */
export function poolOf(answer: (query: Query) => Promise<QueryResult>): ConnectionPool {
  const query = async (asked: Query): Promise<QueryResult> => {
    if (asked.text.includes('server_encoding')) return { rows: [FIT], rowCount: 1 }
    return answer(asked)
  }
  return { connect: () => Promise.resolve({ query, release: () => undefined, on: () => undefined }) }
}
