/** Rejects a call of the client that failed. Aborted calls reject with the reason of their signal instead. */
export class PlantStoreError extends Error {
  /** The HTTP status, or 0 if there was no response. */
  readonly status: number
  /** The error code, such as 40900. Undefined if there was no response, or one that isn't from the service. */
  readonly error: number | undefined
  /** The `X-Request-Id` of the response, to search for in the log of the service. */
  readonly requestId: string | undefined
  /** Whether a create or delete could have taken effect, with this attempt or an earlier one. */
  readonly isOutcomeUnknown: boolean

  /** Creates the error of a call. */
  constructor(
    message: string,
    details: Readonly<Pick<PlantStoreError, 'status' | 'error' | 'requestId' | 'isOutcomeUnknown'>>,
    options?: Readonly<{ cause?: unknown }>,
  ) {
    super(message, options)
    this.status = details.status
    this.error = details.error
    this.requestId = details.requestId
    this.isOutcomeUnknown = details.isOutcomeUnknown
  }

  static {
    // On the prototype, because an own property would be printed with every error. Minifiers change the name of a class.
    this.prototype.name = 'PlantStoreError'
  }
}
