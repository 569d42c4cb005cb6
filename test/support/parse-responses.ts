import assert from 'node:assert/strict'

/** A response as parsed from the bytes on the wire. */
export interface RawResponse {
  readonly status: number
  /** Keyed by lower-case name. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
}

/**
 * Parses the responses on one connection as strictly as RFC 9112 requires.
 * @param isHead whether there may be responses to HEAD, which have a Content-Length but no body
 * @returns the complete responses, and the remaining bytes
 * @throws AssertionError if the bytes aren't HTTP
 */
export function parseResponses(bytes: Buffer, isHead = false): { responses: readonly RawResponse[]; rest: Buffer } {
  const responses: RawResponse[] = []
  let rest = bytes
  while (rest.length > 0) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd === -1) break
    const head = parseHead(rest.toString('latin1', 0, headEnd))
    const body = parseBody(head, rest.subarray(headEnd + 4), isHead)
    if (body === undefined) break
    responses.push({ ...head, body: body.text })
    rest = body.rest
  }
  return { responses, rest }
}

type Head = Pick<RawResponse, 'status' | 'headers'>

function parseHead(text: string): Head {
  const [statusLine = '', ...lines] = text.split('\r\n')
  const status = /^HTTP\/1\.1 ([1-5][0-9]{2}) [\t\x20-\x7e]*$/.exec(statusLine)?.[1]
  assert.ok(status !== undefined, `malformed status line: ${JSON.stringify(statusLine)}`)
  const headers = new Map<string, string>()
  for (const line of lines) {
    const [, name, value] = /^([!#$%&'*+.^_`|~\w-]+): ([\t\x20-\x7e]*)$/.exec(line) ?? []
    assert.ok(name !== undefined && value !== undefined, `malformed header field: ${JSON.stringify(line)}`)
    assert.ok(!headers.has(name.toLowerCase()), `duplicate header field ${name}`)
    headers.set(name.toLowerCase(), value)
  }
  return { status: Number(status), headers }
}

interface Body {
  readonly text: string
  readonly rest: Buffer
}

function parseBody({ status, headers }: Head, bytes: Buffer, isHead: boolean): Body | undefined {
  const emptyBody = { text: '', rest: bytes }
  if (status < 200 || status === 204) return emptyBody
  // Neither the service nor Node sends a body that begins like a response.
  if (isHead && (bytes.length === 0 || bytes.toString('latin1', 0, 5) === 'HTTP/')) return emptyBody
  if (headers.get('transfer-encoding') === 'chunked') return parseChunks(bytes)
  const length = headers.has('content-length') ? Number(headers.get('content-length')) : bytes.length
  const text = bytes.toString('utf8', 0, length)
  // A body without a length ends when the connection closes, so it may be truncated. Only two kinds occur: lists for
  // HTTP/1.0, which end with `]`, and the empty bodies of errors that Node's parser reports.
  const isTruncated = !headers.has('content-length') && text !== '' && !text.endsWith(']')
  return bytes.length < length || isTruncated ? undefined : { text, rest: bytes.subarray(length) }
}

function parseChunks(bytes: Buffer): Body | undefined {
  const chunks: Buffer[] = []
  let rest = bytes
  for (;;) {
    const lineEnd = rest.indexOf('\r\n')
    if (lineEnd === -1) return undefined
    const size = rest.toString('latin1', 0, lineEnd)
    assert.match(size, /^[0-9a-f]{1,8}$/, 'malformed chunk size')
    const end = lineEnd + 2 + parseInt(size, 16)
    if (rest.length < end + 2) return undefined
    assert.equal(rest.toString('latin1', end, end + 2), '\r\n', 'missing CRLF after a chunk')
    chunks.push(rest.subarray(lineEnd + 2, end))
    rest = rest.subarray(end + 2)
    if (size === '0') return { text: Buffer.concat(chunks).toString(), rest }
  }
}
