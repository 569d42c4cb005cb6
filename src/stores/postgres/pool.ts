import type { ConnectionOptions } from 'node:tls'

/** The members of a connection pool that the store uses: a `Pool` of `pg`, or any object that behaves like it. */
export interface ConnectionPool {
  /** Checks out a connection. */
  connect(): Promise<Connection>
  /** Reports errors on idle connections (`error`), and new connections before they are checked out (`connect`). */
  on?(event: 'error' | 'connect', listener: ((error: Error) => void) | ((connection: Connection) => void)): unknown
}

/**
 * The members of a pooled connection that the store uses: a `PoolClient` of `pg`, or any object that behaves like it.
 */
export interface Connection {
  /** Executes a statement on this connection. */
  query(query: Query): Promise<QueryResult>
  /** Returns the connection to the pool. If an error is passed, the pool closes the connection. */
  release(error?: Error): void
  /** Reports that the connection broke. */
  on(event: 'error', listener: (error: Error) => void): unknown
  /** Reports notices and warnings from the server. `routine` is the server function that sent the notice. */
  on(event: 'notice', listener: (notice: { readonly routine?: string | undefined }) => void): unknown
  /**
   * The ID of the server process. This member and the following ones are only used to cancel statements; the store
   * works without them.
   */
  readonly processID?: number | null | undefined
  /** The secret key that the server requires to cancel a statement (BackendKeyData in the protocol). */
  readonly secretKey?: number | null | undefined
  /** The server's host name or address, or the directory of its Unix socket. */
  readonly host?: string | undefined
  /** The server's port. */
  readonly port?: number | undefined
  /** Whether the connection uses TLS, or its TLS options. */
  readonly ssl?: boolean | ConnectionOptions | undefined
  /** The driver's protocol layer. */
  readonly connection?:
    | {
        /** The socket. If the host has several addresses, `stream.remoteAddress` is the one that it's connected to. */
        readonly stream?: object | undefined
      }
    | undefined
}

/** A query that the store sends. */
export interface Query {
  /** The name of the prepared statement; if undefined, the statement isn't prepared. */
  name?: string | undefined
  /** The SQL text, with `$1` for the first parameter. */
  text: string
  /** The parameters: strings, numbers, null, and arrays of these. */
  values: unknown[]
  /** Rows are returned as arrays, with the columns in the order of the statement. */
  rowMode: 'array'
  /**
   * Type parsers that leave every value as text, so that ids remain exact no matter which parsers the application has
   * set.
   */
  types: {
    /** Returns the parser, which is the same for every type. */
    getTypeParser(): (text: string) => string
  }
}

/** The result of a {@link Query}. */
export interface QueryResult {
  /** The rows. Columns are text, or `null` for NULL. */
  readonly rows: readonly (readonly unknown[])[]
  /** The number of rows that the statement changed. */
  readonly rowCount: number | null
}

/**
 * Leaves every value as text. An application might have configured `pg` to parse an int8 as a double, which would round
 * ids.
 */
export const RAW_TEXT_TYPES: Query['types'] = { getTypeParser: () => String }
