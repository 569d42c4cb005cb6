import type { ConnectionOptions } from 'node:tls'

/** What the store calls of a pool of connections: a `Pool` of `pg`, or what behaves like one. */
export interface Queryable {
  query(query: Query): Promise<QueryResult>
  /**
   * Lends a connection. A pool without it works, but then a statement that timed out goes on in the server, and the
   * store cannot see whether a connection leads to a server that takes writes.
   */
  connect?(): Promise<Connection>
  /** Where the pool tells of a connection that broke while it was idle. */
  on?(event: 'error', listener: (error: Error) => void): unknown
  listenerCount?(event: 'error'): number
}

/** A pool that lends connections. */
export type LendingPool = Queryable & Required<Pick<Queryable, 'connect'>>

/** What the store calls of a connection that the pool lends: a `PoolClient` of `pg`, or what behaves like one. */
export interface Connection {
  query(query: Query): Promise<QueryResult>
  /** Gives the connection back. With an error, the pool closes it. */
  release(error?: Error): void
  /** Where the connection tells that it broke. */
  on(event: 'error', listener: (error: Error) => void): unknown

  // The rest is for cancelling a statement. The protocol calls the two numbers BackendKeyData. A connection that lacks
  // them works, but then its statements cannot be cancelled.
  readonly processID?: number | null
  readonly secretKey?: number | null
  /** A name, an address, or the folder of a Unix socket. */
  readonly host?: string
  readonly port?: number
  readonly ssl?: boolean | ConnectionOptions
  /** Its socket tells which of several addresses of the host the connection leads to. */
  readonly connection?: { readonly stream?: object }
}

/** What a pool, or a connection of it, is asked. */
export interface Query {
  /** Under which a connection keeps the statement prepared. Without it the connection does not keep it. */
  name?: string
  text: string
  /** Strings, numbers and null, and arrays of these. */
  values: unknown[]
  rowMode: 'array'
  /** How values are read, whatever the host has set: ids are exact as the text that the server sends. */
  types: { getTypeParser(): (text: string) => string }
  /** After how many milliseconds without an answer the pool gives the connection up; set if the pool lends none. */
  query_timeout?: number
}

/** What a pool answers. */
export interface QueryResult {
  readonly rows: readonly (readonly unknown[])[]
  /** How many rows the statement has changed. */
  readonly rowCount: number | null
}

const asText = (text: string): string => text

/** For `pg`, which would read an int8 as a double if its host has chosen so. */
export const AS_TEXT: Query['types'] = { getTypeParser: () => asText }
