import type { Query } from '../../../src/stores/postgres/pool.ts'
import type { Statement } from '../../../src/stores/postgres/statements.ts'
import type { Call } from '../reference-model.ts'

/** A query, and the calls that it serves. */
export interface TrackedQuery {
  readonly query: Query
  /** Undefined for an inspection, and for the statements of a ping. */
  readonly statement: Statement | undefined
  /** The calls whose plants the query writes. */
  readonly writes: readonly Call[]
  readonly reads: readonly Call[]
  /** Whether the table existed when the query was sent. */
  readonly hadTable: boolean
  /** Whether the store had found the table before. */
  readonly hasFoundSchema: boolean
}

/** Whether a query is a ping's probe. */
export const isProbeWrite = ({ text }: Query): boolean => text.includes('repeat(')
