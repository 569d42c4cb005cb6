/** What every answer of a run must be. */
export interface Answer {
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
  readonly #expected: Answer
  #state: 'head' | 'body' | 'chunk size' | 'chunk' | 'chunk end' | 'trailers' = 'head'
  /** The beginning of a head or of a line whose end has not arrived. */
  #text = ''
  /** Bytes of the body, or of its chunk, that are still to come. */
  #left = 0
  /** Bytes of the body that have arrived, of all its chunks. */
  #read = 0
  #answers = 0

  constructor(expected: Answer) {
    this.#expected = expected
  }

  /**
   * Reads what has arrived.
   * @returns how many answers are complete with it
   * @throws WrongAnswerError if an answer is not the expected one
   */
  read(bytes: Buffer): number {
    this.#answers = 0
    let at = 0
    while (at < bytes.length) {
      if (this.#state === 'head') at = this.#readHead(bytes, at)
      else if (this.#state === 'body' || this.#state === 'chunk') at = this.#readBody(bytes, at)
      else at = this.#readLine(bytes, at)
    }
    return this.#answers
  }

  #readHead(bytes: Buffer, at: number): number {
    const next = this.#readText(bytes, at, '\r\n\r\n')
    if (next === undefined) return bytes.length
    const head = parseHead(this.#text)
    this.#text = ''
    const { status } = this.#expected
    if (head.status !== status) {
      throw new WrongAnswerError(`status ${head.status} instead of ${status}: ${excerpt(bytes, next)}`)
    }
    if (head.length !== 0 && !head.contentType.startsWith('application/json')) {
      throw new WrongAnswerError(`Content-Type "${head.contentType}" instead of application/json`)
    }
    if (head.length === undefined) {
      this.#state = 'chunk size'
    } else if (head.length === 0) {
      this.#complete()
    } else {
      this.#left = head.length
      this.#state = 'body'
    }
    return next
  }

  #readBody(bytes: Buffer, at: number): number {
    const end = Math.min(at + this.#left, bytes.length)
    const { body } = this.#expected
    const read = this.#read + end - at
    if (body !== undefined && (read > body.length || body.compare(bytes, at, end, this.#read, read) !== 0)) {
      throw new WrongAnswerError(`another body than expected, from byte ${this.#read} on: ${excerpt(bytes, at)}`)
    }
    this.#read = read
    this.#left -= end - at
    if (this.#left === 0) {
      if (this.#state === 'body') this.#complete()
      else this.#state = 'chunk end'
    }
    return end
  }

  /** Reads a line of the chunked coding (RFC 9112 section 7.1). */
  #readLine(bytes: Buffer, at: number): number {
    const next = this.#readText(bytes, at, '\r\n')
    if (next === undefined) return bytes.length
    const line = this.#text.slice(0, -2)
    this.#text = ''
    if (this.#state === 'chunk end') {
      this.#state = 'chunk size'
    } else if (this.#state === 'trailers') {
      if (line === '') this.#complete()
    } else {
      this.#left = Number.parseInt(line, 16)
      if (Number.isNaN(this.#left)) throw new WrongAnswerError(`"${line}" where the size of a chunk is due`)
      this.#state = this.#left === 0 ? 'trailers' : 'chunk'
    }
    return next
  }

  /** Moves text up to its end mark into `#text`; once the mark is there, says where the next byte is. */
  #readText(bytes: Buffer, at: number, mark: string): number | undefined {
    if (this.#text === '') {
      const end = bytes.indexOf(mark, at, 'latin1')
      this.#text = bytes.toString('latin1', at, end === -1 ? bytes.length : end + mark.length)
      return end === -1 ? undefined : end + mark.length
    }
    const before = this.#text.length
    const text = this.#text + bytes.toString('latin1', at)
    const end = text.indexOf(mark)
    this.#text = end === -1 ? text : text.slice(0, end + mark.length)
    return end === -1 ? undefined : at + this.#text.length - before
  }

  #complete(): void {
    const { body } = this.#expected
    if (body !== undefined && this.#read !== body.length) {
      throw new WrongAnswerError(`${this.#read} bytes instead of ${body.length}`)
    }
    this.#read = 0
    this.#state = 'head'
    this.#answers++
  }
}

/** The service answered, but not what it should. */
export class WrongAnswerError extends Error {
  static {
    this.prototype.name = 'WrongAnswerError'
  }
}

/** Within a second, which is the resolution of `Date`, the heads of a run are equal: each is parsed once. */
const heads = new Map<string, Head>()

function parseHead(text: string): Head {
  let head = heads.get(text)
  if (head === undefined) {
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1])
    const field = (name: string): string | undefined =>
      new RegExp(`\r\n${name}:[ \t]*(.*?)[ \t]*\r\n`, 'i').exec(text)?.[1]
    const chunked = field('Transfer-Encoding')?.toLowerCase() === 'chunked'
    const length = status === 204 ? 0 : Number(field('Content-Length'))
    if (Number.isNaN(status) || (Number.isNaN(length) && !chunked)) {
      throw new WrongAnswerError(`a head that says no status or no length: ${text}`)
    }
    head = { status, contentType: field('Content-Type') ?? '', length: chunked ? undefined : length }
    if (heads.size >= 1000) heads.clear()
    heads.set(text, head)
  }
  return head
}

function excerpt(bytes: Buffer, at: number): string {
  return bytes.toString('utf8', at, at + 200)
}
