import type { ConnectionOptions } from 'node:tls'

/** A pool of connections, as far as the store uses it: a `Pool` of `pg`, or one that behaves like it. */
export interface ConnectionPool {
  /** Lends a connection. */
  connect(): Promise<Connection>
  /** Tells of an idle connection that broke (`error`), and of a new one before the pool lends it (`connect`). */
  on?(event: 'error' | 'connect', listener: ((error: Error) => void) | ((connection: Connection) => void)): unknown
}

/** A connection that the pool lends, as far as the store uses it: a `PoolClient` of `pg`, or one like it. */
export interface Connection {
  /** Runs a statement on this connection. */
  query(query: Query): Promise<QueryResult>
  /** Gives the connection back. With an error, the pool closes it. */
  release(error?: Error): void
  /** Where the connection tells that it broke. */
  on(event: 'error', listener: (error: Error) => void): unknown
  /** Where the connection passes on what the server says beside its answers, and which of its functions says it. */
  on(event: 'notice', listener: (notice: { readonly routine?: string | undefined }) => void): unknown
  /** The server's process. This and the rest serve to cancel a statement: without them, the connection works, too. */
  readonly processID?: number | null | undefined
  /** The secret that the server wants in order to cancel; the protocol calls both BackendKeyData. */
  readonly secretKey?: number | null | undefined
  /** A name, an address, or the folder of a Unix socket. */
  readonly host?: string | undefined
  /** The port of the server. */
  readonly port?: number | undefined
  /** Whether, and how, the connection speaks TLS. */
  readonly ssl?: boolean | ConnectionOptions | undefined
  /** What the driver speaks the protocol with. */
  readonly connection?:
    | {
        /** The socket, which tells which of several addresses of the host the connection leads to. */
        readonly stream?: object | undefined
      }
    | undefined
}

/** What a connection is asked. */
export interface Query {
  /** Under which a connection keeps the statement prepared. Without it the connection does not keep it. */
  name?: string | undefined
  /** The SQL, with `$1` for the first value. */
  text: string
  /** Strings, numbers and null, and arrays of these. */
  values: unknown[]
  /** Rows are arrays of their columns, in the order of the statement. */
  rowMode: 'array'
  /** How values are read, whatever the host has set: ids are exact as the text that the server sends. */
  types: {
    /** Gives the function that reads a value, for every type the same. */
    getTypeParser(): (text: string) => string
  }
}

/** What a connection answers. */
export interface QueryResult {
  /** Row by row, the columns as text; NULL is `null`. */
  readonly rows: readonly (readonly unknown[])[]
  /** How many rows the statement has changed. */
  readonly rowCount: number | null
}

/** For `pg`, which would read an int8 as a double if its host has chosen so. */
export const RAW_TEXT_TYPES: Query['types'] = { getTypeParser: () => String }
