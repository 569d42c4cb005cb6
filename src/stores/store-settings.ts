/** The settings of a program for its store. */
export interface StoreSettings {
  readonly postgresPoolSize: number
  /** The most plants that one statement of Postgres creates or deletes. */
  readonly postgresBatch: number
  readonly migrate: boolean
  /** How long a call of the store may take, in milliseconds. */
  readonly storeTimeoutMs: number
  /** Gives the URL whose password new connections use; by default the one that was opened. */
  readonly currentUrl?: () => string
  readonly onEvent: (event: 'disconnected' | 'unreachable' | 'warning', reason: unknown) => void
}
