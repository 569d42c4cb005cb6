/** The error with which a failed client call rejects. Aborted calls reject with their signal's reason instead. */
export class PlantStoreError extends Error {
  /** The HTTP status, or 0 if there was no response. */
  readonly status: number
  /** The error code, such as 40900. Undefined if there was no response, or if the response isn't from the service. */
  readonly error: number | undefined
  /** The `X-Request-Id` of the response, to search for in the log of the service. */
  readonly requestId: string | undefined
  /** Whether the create or delete may have taken effect, in the last attempt or an earlier one. */
  readonly isOutcomeUnknown: boolean

  /** Creates the error to throw for a failed call. */
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
    // Set on the prototype, because an own property would be printed with every error. The name is spelled out because
    // minifiers rename the class.
    this.prototype.name = 'PlantStoreError'
  }
}
