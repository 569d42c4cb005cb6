/** What every answer of a run must be. */
export interface ExpectedResponse {
  readonly status: number
  /** Compared byte for byte, if given. */
  readonly body?: Buffer
}

interface Head {
  readonly status: number
  readonly contentType: string
  /** Undefined if the body is chunked. */
  readonly length: number | undefined
}

/**
 * Reads the answers that arrive on one connection, however they are cut into chunks, and compares each with
 * the one expected. It keeps no body and copies none, so that the load costs less than what it measures.
 */
export class ResponseReader {
  readonly #expected: ExpectedResponse
  #state: 'head' | 'body' | 'chunk size' | 'chunk' | 'chunk end' | 'trailers' = 'head'
  /** The beginning of a head or of a line whose end has not arrived. */
  #buffered = ''
  /** Bytes of the body, or of its chunk, that are still to come. */
  #remainingBytes = 0
  /** Bytes of the body that have arrived, of all its chunks. */
  #bodyBytes = 0
  #responseCount = 0

  constructor(expected: ExpectedResponse) {
    this.#expected = expected
  }

  /**
   * Reads what has arrived.
   * @returns how many answers are complete with it
   * @throws UnexpectedResponseError if an answer is not the expected one
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
        `another body than expected, from byte ${this.#bodyBytes} on: ${excerpt(bytes, offset)}`,
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

  /** Reads a line of the chunked coding (RFC 9112 section 7.1). */
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
      if (Number.isNaN(this.#remainingBytes))
        throw new UnexpectedResponseError(`"${line}" where the size of a chunk is due`)
      this.#state = this.#remainingBytes === 0 ? 'trailers' : 'chunk'
    }
    return nextOffset
  }

  /** Moves text up to its end mark into `#text`; once the mark is there, says where the next byte is. */
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
      throw new UnexpectedResponseError(`${this.#bodyBytes} bytes instead of ${body.length}`)
    }
    this.#bodyBytes = 0
    this.#state = 'head'
    this.#responseCount++
  }
}

/** The service answered, but not what it should. */
export class UnexpectedResponseError extends Error {
  static {
    this.prototype.name = 'UnexpectedResponseError'
  }
}

/** Within a second, which is the resolution of `Date`, the heads of a run are equal: each is parsed once. */
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
      throw new UnexpectedResponseError(`a head that says no status or no length: ${text}`)
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
