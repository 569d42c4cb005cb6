interface RequestKind {
  readonly line: string
  /** The owner: ada's plants are short, eve's are long. */
  readonly token?: string
  readonly fields?: string
  readonly body?: 'whole' | 'chunks' | 'broken'
  /** The Content-Length, if it differs from the length of the body. */
  readonly declaredLength?: number
  /** The status or error code of the response, unless the store fails. */
  readonly expectedCode: number
  /** Whether the response closes the connection. */
  readonly closesConnection?: true
  /** Whether Node still waits for the end of the request when it is rejected. */
  readonly isUnterminated?: true
}

const POST = 'POST /plants'
const HOST = 'Host: a\r\n'

const KEEP_ALIVE_KINDS = {
  list: { line: 'GET /plants', expectedCode: 200 },
  long: { line: 'GET /plants', token: 'eve', expectedCode: 200 },
  create: { line: POST, body: 'whole', expectedCode: 200 },
  chunks: { line: POST, body: 'chunks', expectedCode: 200 },
  expect: { line: POST, body: 'whole', fields: `${HOST}Expect: 100-continue\r\n`, expectedCode: 200 },
  wide: { line: 'GET /plants', fields: `${HOST}X: ${' '.repeat(700)}\r\n`, expectedCode: 200 },
  delete: { line: 'DELETE /plants/7', expectedCode: 40401 },
  options: { line: 'OPTIONS /plants', expectedCode: 204 },
  unknown: { line: 'GET /nothing', expectedCode: 40400 },
  wrong: { line: POST, body: 'whole', token: 'none', expectedCode: 40101 },
} satisfies Readonly<Record<string, RequestKind>>

/** Requests after which no other request on the connection runs. */
const CLOSING_KINDS = {
  close: { line: 'GET /plants', fields: `${HOST}Connection: close\r\n`, expectedCode: 200, closesConnection: true },
  noHost: { line: 'GET /plants', fields: '', expectedCode: 40000, closesConnection: true },
  strange: {
    line: POST,
    body: 'whole',
    fields: `${HOST}Expect: rain\r\n`,
    expectedCode: 41700,
    closesConnection: true,
  },
  large: { line: POST, body: 'whole', declaredLength: 70_000, expectedCode: 41300, closesConnection: true },
  broken: { line: POST, body: 'broken', expectedCode: 40000, closesConnection: true, isUnterminated: true },
  connect: { line: 'CONNECT', expectedCode: 40000, closesConnection: true, isUnterminated: true },
  nonsense: { line: 'Nonsense', expectedCode: 40000, closesConnection: true, isUnterminated: true },
} satisfies Readonly<Record<string, RequestKind>>

export const [KEEP_ALIVE_NAMES, CLOSING_NAMES] = [Object.keys(KEEP_ALIVE_KINDS), Object.keys(CLOSING_KINDS)]
export const REQUEST_KINDS: Readonly<Record<string, RequestKind>> = { ...KEEP_ALIVE_KINDS, ...CLOSING_KINDS }

/** Returns the head and the body of a request. */
export function encodeRequest(
  { line, token = 'ada', fields = HOST, body, declaredLength }: RequestKind,
  number: number,
): [string, string] {
  const text = `{"id":${number},"name":"plant ${number}"}`
  const [framing, content] = {
    none: ['', ''],
    whole: [`Content-Length: ${declaredLength ?? text.length}\r\n`, text],
    chunks: ['Transfer-Encoding: chunked\r\n', `9\r\n${text.slice(0, 9)}\r\n${encodeChunk(text.slice(9))}0\r\n\r\n`],
    broken: ['Transfer-Encoding: chunked\r\n', 'five\r\n'],
  }[body ?? 'none'] as [string, string]
  const target = line === 'CONNECT' ? ' a:80' : `?n=${number}`
  const type = body === undefined ? '' : 'Content-Type: application/json\r\n'
  return [`${line}${target} HTTP/1.1\r\n${fields}Authorization: Bearer ${token}\r\n${type}${framing}\r\n`, content]
}

function encodeChunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`
}
