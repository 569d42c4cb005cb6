import { readMember } from '../option-checks.ts'
import { encodeUtf8 } from '../plants/text.ts'

/** The `error` member of the body of an error. Its first three digits are the status. */
export type ErrorCode = (typeof ERRORS)[ErrorName]['error']

/** Every error of the service. One that is made may get a message that is more exact. */
export const ERRORS = {
  malformedRequest: { error: 40000, message: 'The request is malformed.' },
  invalidJson: { error: 40001, message: 'The body is not JSON.' },
  invalidPlant: { error: 40002, message: 'The plant is invalid.' },
  invalidId: { error: 40003, message: 'The id in the path is not a decimal integer.' },
  invalidQuery: { error: 40004, message: 'The query is invalid.' },
  missingToken: {
    error: 40100,
    message: 'A bearer token is needed: send "Authorization: Bearer <token>".',
    headers: ['WWW-Authenticate', 'Bearer realm="plant-store"'],
  },
  invalidToken: {
    error: 40101,
    message: 'The bearer token is malformed or not known here.',
    headers: ['WWW-Authenticate', 'Bearer realm="plant-store", error="invalid_token"'],
  },
  readOnlyToken: {
    error: 40300,
    message: 'This bearer token may only read.',
    headers: ['WWW-Authenticate', 'Bearer realm="plant-store", error="insufficient_scope", scope="write"'],
  },
  pathNotFound: { error: 40400, message: 'There is nothing at this path. The plants are at /plants.' },
  plantNotFound: { error: 40401, message: 'You have no plant with this id.' },
  methodNotAllowed: { error: 40500, message: 'The resource does not have this method; Allow lists those it has.' },
  requestTimeout: { error: 40800, message: 'The request did not arrive in time.' },
  idTaken: { error: 40900, message: 'You already have a plant with this id; it stays as it was.' },
  bodyTooLarge: { error: 41300, message: 'The body is larger than this service takes.' },
  unsupportedContentType: {
    error: 41500,
    message: 'The body must be sent with one "Content-Type: application/json", in UTF-8.',
    headers: ['Accept', 'application/json'],
  },
  unsupportedContentEncoding: {
    error: 41501,
    message: 'The body must be sent without a Content-Encoding.',
    headers: ['Accept-Encoding', 'identity'],
  },
  expectationFailed: { error: 41700, message: 'The only expectation that is met here is 100-continue.' },
  headersTooLarge: { error: 43100, message: 'The request has too many header fields, or too large ones.' },
  internalError: { error: 50000, message: 'Something went wrong in the service.' },
  unsupportedTransferCoding: { error: 50100, message: 'The only transfer coding that is understood here is chunked.' },
  storeUnavailable: {
    error: 50300,
    message: 'The plants are out of reach at the moment; try again.',
    headers: ['Retry-After', '1'],
  },
  outcomeUnknown: {
    error: 50301,
    message: 'The store did not answer in time; whether the request was carried out is unknown.',
    headers: ['Retry-After', '1'],
  },
} as const

export type ErrorName = keyof typeof ERRORS

/** A response that may be thrown; all else that is thrown is `unexpected`. It is no `Error`, which would take a stack. */
export class HttpError {
  readonly error: ErrorCode
  readonly status: number
  readonly message: string
  readonly headers: readonly string[]
  readonly contentType = undefined
  readonly allowsCaching = false
  readonly body: string
  /** The error for `onError` of the host, if the fault is not the client's. */
  readonly cause: unknown

  /** @param message says more exactly what is wrong; never holds anything that the client sent */
  constructor(name: ErrorName, message?: string, headers?: readonly string[], cause?: unknown) {
    const definition: { error: ErrorCode; message: string; headers?: readonly string[] } = ERRORS[name]
    this.error = definition.error
    this.status = Math.trunc(definition.error / 100)
    this.message = message ?? definition.message
    this.headers = headers ?? readMember(definition, 'headers') ?? []
    this.body = encodeUtf8(JSON.stringify({ error: this.error, message: this.message }))
    this.cause = cause
  }
}

export const HTTP_ERRORS: Readonly<Record<ErrorName, HttpError>> = Object.fromEntries(
  Object.keys(ERRORS).map((name) => [name, new HttpError(name as ErrorName)]),
) as Record<ErrorName, HttpError>
