/** nginx stores responses to requests with Authorization by default, although RFC 9111 forbids that. */
export const NO_STORE: readonly string[] = ['Cache-Control', 'no-store']
export const JSON_HEADERS: readonly string[] = [...NO_STORE, 'Content-Type', 'application/json']

/** The `error` member of an error response. Its first three digits are the status. */
export type ErrorCode = (typeof ERRORS)[ErrorName]['error']

/** All errors, with their default messages. A response may have a more specific message. */
export const ERRORS = {
  malformedRequest: { error: 40000, message: 'The request is malformed.' },
  invalidJson: { error: 40001, message: 'The body is not JSON.' },
  invalidPlant: { error: 40002, message: 'The plant is invalid.' },
  invalidId: { error: 40003, message: 'The id in the path is not a decimal integer.' },
  invalidQuery: { error: 40004, message: 'The query is invalid.' },
  missingToken: {
    error: 40100,
    message: 'A bearer token is required: send "Authorization: Bearer <token>".',
    headers: { 'WWW-Authenticate': 'Bearer realm="plant-store"' },
  },
  invalidToken: {
    error: 40101,
    message: 'The bearer token is invalid.',
    headers: { 'WWW-Authenticate': 'Bearer realm="plant-store", error="invalid_token"' },
  },
  readOnlyToken: {
    error: 40300,
    message: 'This bearer token is read-only.',
    headers: { 'WWW-Authenticate': 'Bearer realm="plant-store", error="insufficient_scope", scope="write"' },
  },
  pathNotFound: { error: 40400, message: 'There is no resource at this path. The plants are at /plants.' },
  plantNotFound: { error: 40401, message: 'You have no plant with this id.' },
  methodNotAllowed: {
    error: 40500,
    message: 'The resource does not support this method. The Allow header lists the supported methods.',
  },
  requestTimeout: { error: 40800, message: 'The request did not arrive in time.' },
  idTaken: { error: 40900, message: 'You already have a plant with this id. It was not changed.' },
  bodyTooLarge: { error: 41300, message: 'The body is too large.' },
  unsupportedContentType: {
    error: 41500,
    message: 'The Content-Type must be application/json, in UTF-8.',
    headers: { Accept: 'application/json' },
  },
  unsupportedContentEncoding: {
    error: 41501,
    message: 'Content-Encoding is not supported. Send the body uncompressed.',
    headers: { 'Accept-Encoding': 'identity' },
  },
  headersTooLarge: { error: 43100, message: 'The request has too many header fields, or they are too large.' },
  internalError: { error: 50000, message: 'An internal error occurred.' },
  unsupportedTransferCoding: { error: 50100, message: 'The only supported transfer coding is chunked.' },
  storeUnavailable: {
    error: 50300,
    message: 'The store is temporarily unavailable. The request had no effect; try again.',
    headers: { 'Retry-After': '1' },
  },
  outcomeUnknown: {
    error: 50301,
    message: 'The store failed or did not respond in time. It is unknown whether the request took effect.',
    headers: { 'Retry-After': '1' },
  },
} as const

export type ErrorName = keyof typeof ERRORS

/**
 * An error response that can be thrown. Anything else that is thrown results in `internalError`. This class doesn't
 * extend `Error`, because capturing a stack trace is slow.
 */
export class HttpError {
  readonly error: ErrorCode
  readonly status: number
  readonly message: string
  readonly headers: readonly string[]
  readonly body: string
  /** The error that is passed to the host's `onError`; undefined if the client caused the error response. */
  readonly cause: unknown

  /** @param message replaces the default message; must not contain anything that the client sent */
  constructor(name: ErrorName, message?: string, headers?: readonly string[], cause?: unknown) {
    const definition: { error: ErrorCode; message: string; headers?: Readonly<Record<string, string>> } = ERRORS[name]
    this.error = definition.error
    this.status = Math.trunc(definition.error / 100)
    this.message = message ?? definition.message
    this.headers = [...JSON_HEADERS, ...(headers ?? Object.entries(definition.headers ?? {}).flat())]
    this.body = JSON.stringify({ error: this.error, message: this.message })
    this.cause = cause
  }
}

export const HTTP_ERRORS: Readonly<Record<ErrorName, HttpError>> = Object.fromEntries(
  Object.keys(ERRORS).map((name) => [name, new HttpError(name as ErrorName)]),
) as Record<ErrorName, HttpError>
