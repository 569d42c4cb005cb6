/** The settings of a program for its store. */
export interface StoreSettings {
  /** The most connections to Postgres. */
  readonly postgresPoolSize: number
  /** The most plants that one statement of Postgres creates or deletes. */
  readonly postgresBatch: number
  /** Whether the table is made if there is none. */
  readonly migrate: boolean
  /** How long a call of the store may take, in milliseconds. */
  readonly storeTimeoutMs: number
  /** Gives the URL whose password new connections use; by default the one that was opened. */
  readonly currentUrl?: () => string
  /** Gets the events of the store. */
  readonly onEvent: (event: 'disconnected' | 'unreachable' | 'warning', reason: unknown) => void
}
