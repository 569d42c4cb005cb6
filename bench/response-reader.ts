/** The expected response to every request of a run. */
export interface ExpectedResponse {
  readonly status: number
  /** If present, compared byte for byte. */
  readonly body?: Buffer
}

interface Head {
  readonly status: number
  readonly contentType: string
  /** Undefined if the body is chunked. */
  readonly length: number | undefined
}

/**
 * Parses the responses on one connection and compares each with the expected response. Bodies are neither stored nor
 * copied, so that the client uses less CPU time than the server that it measures.
 */
export class ResponseReader {
  readonly #expected: ExpectedResponse
  #state: 'head' | 'body' | 'chunk size' | 'chunk' | 'chunk end' | 'trailers' = 'head'
  /** The received part of a head or line that isn't complete yet. */
  #buffered = ''
  /** The number of bytes of the body, or of the current chunk, that haven't arrived yet. */
  #remainingBytes = 0
  /** The number of body bytes that have arrived so far, across all chunks. */
  #bodyBytes = 0
  #responseCount = 0

  constructor(expected: ExpectedResponse) {
    this.#expected = expected
  }

  /**
   * Parses the next bytes of the connection.
   * @returns the number of responses that these bytes complete
   * @throws UnexpectedResponseError if a response differs from the expected response
   */
  read(bytes: Buffer): number {
    this.#responseCount = 0
    let offset = 0
    while (offset < bytes.length) {
      if (this.#state === 'head') offset = this.#readHead(bytes, offset)
      else if (this.#state === 'body' || this.#state === 'chunk') offset = this.#readBody(bytes, offset)
      else offset = this.#readLine(bytes, offset)
    }
    return this.#responseCount
  }

  #readHead(bytes: Buffer, offset: number): number {
    const nextOffset = this.#readText(bytes, offset, '\r\n\r\n')
    if (nextOffset === undefined) return bytes.length
    const head = parseHead(this.#buffered)
    this.#buffered = ''
    const { status } = this.#expected
    if (head.status !== status) {
      throw new UnexpectedResponseError(`status ${head.status} instead of ${status}: ${excerpt(bytes, nextOffset)}`)
    }
    if (head.length !== 0 && !head.contentType.startsWith('application/json')) {
      throw new UnexpectedResponseError(`Content-Type "${head.contentType}" instead of application/json`)
    }
    if (head.length === undefined) {
      this.#state = 'chunk size'
    } else if (head.length === 0) {
      this.#completeResponse()
    } else {
      this.#remainingBytes = head.length
      this.#state = 'body'
    }
    return nextOffset
  }

  #readBody(bytes: Buffer, offset: number): number {
    const end = Math.min(offset + this.#remainingBytes, bytes.length)
    const { body } = this.#expected
    const bodyBytes = this.#bodyBytes + end - offset
    if (
      body !== undefined &&
      (bodyBytes > body.length || body.compare(bytes, offset, end, this.#bodyBytes, bodyBytes) !== 0)
    ) {
      throw new UnexpectedResponseError(
        `unexpected body, starting at byte ${this.#bodyBytes}: ${excerpt(bytes, offset)}`,
      )
    }
    this.#bodyBytes = bodyBytes
    this.#remainingBytes -= end - offset
    if (this.#remainingBytes === 0) {
      if (this.#state === 'body') this.#completeResponse()
      else this.#state = 'chunk end'
    }
    return end
  }

  /** Reads a line of the chunked transfer coding (RFC 9112 section 7.1). */
  #readLine(bytes: Buffer, offset: number): number {
    const nextOffset = this.#readText(bytes, offset, '\r\n')
    if (nextOffset === undefined) return bytes.length
    const line = this.#buffered.slice(0, -2)
    this.#buffered = ''
    if (this.#state === 'chunk end') {
      this.#state = 'chunk size'
    } else if (this.#state === 'trailers') {
      if (line === '') this.#completeResponse()
    } else {
      this.#remainingBytes = Number.parseInt(line, 16)
      if (Number.isNaN(this.#remainingBytes)) throw new UnexpectedResponseError(`invalid chunk size "${line}"`)
      this.#state = this.#remainingBytes === 0 ? 'trailers' : 'chunk'
    }
    return nextOffset
  }

  /** Appends text up to the delimiter to `#buffered`. Returns the offset after the delimiter if it has arrived. */
  #readText(bytes: Buffer, offset: number, delimiter: string): number | undefined {
    if (this.#buffered === '') {
      const end = bytes.indexOf(delimiter, offset, 'latin1')
      this.#buffered = bytes.toString('latin1', offset, end === -1 ? bytes.length : end + delimiter.length)
      return end === -1 ? undefined : end + delimiter.length
    }
    const bufferedLength = this.#buffered.length
    const text = this.#buffered + bytes.toString('latin1', offset)
    const end = text.indexOf(delimiter)
    this.#buffered = end === -1 ? text : text.slice(0, end + delimiter.length)
    return end === -1 ? undefined : offset + this.#buffered.length - bufferedLength
  }

  #completeResponse(): void {
    const { body } = this.#expected
    if (body !== undefined && this.#bodyBytes !== body.length) {
      throw new UnexpectedResponseError(`body of ${this.#bodyBytes} bytes instead of ${body.length}`)
    }
    this.#bodyBytes = 0
    this.#state = 'head'
    this.#responseCount++
  }
}

/** Thrown when a response differs from the expected response. */
export class UnexpectedResponseError extends Error {
  static {
    this.prototype.name = 'UnexpectedResponseError'
  }
}

/**
 * Caches parsed heads. All heads that a run receives within the same second are identical, because that is the
 * resolution of the `Date` header.
 */
const headCache = new Map<string, Head>()

function parseHead(text: string): Head {
  let head = headCache.get(text)
  if (head === undefined) {
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1])
    const field = (name: string): string | undefined =>
      new RegExp(`\r\n${name}:[ \t]*(.*?)[ \t]*\r\n`, 'i').exec(text)?.[1]
    const isChunked = field('Transfer-Encoding')?.toLowerCase() === 'chunked'
    const length = status === 204 ? 0 : Number(field('Content-Length'))
    if (Number.isNaN(status) || (Number.isNaN(length) && !isChunked)) {
      throw new UnexpectedResponseError(`head without a status or a length: ${text}`)
    }
    head = { status, contentType: field('Content-Type') ?? '', length: isChunked ? undefined : length }
    if (headCache.size >= 1000) headCache.clear()
    headCache.set(text, head)
  }
  return head
}

function excerpt(bytes: Buffer, offset: number): string {
  return bytes.toString('utf8', offset, offset + 200)
}
