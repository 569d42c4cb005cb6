/** A kind of request. */
interface Kind {
  readonly line: string
  /** Whose token it has: ada's plants are short, eve's are long. */
  readonly token?: string
  readonly fields?: string
  readonly body?: 'whole' | 'chunks' | 'broken'
  /** The length that it says its body has. */
  readonly length?: number
  /** The status or the error that it is answered, unless the store fails. */
  readonly code: number
  /** Whether its answer closes the connection. */
  readonly closes?: true
  /** Whether Node still waits for its end when it is refused. */
  readonly isEndless?: true
}

const POST = 'POST /plants'
const HOST = 'Host: a\r\n'

const GOING_ON = {
  list: { line: 'GET /plants', code: 200 },
  long: { line: 'GET /plants', token: 'eve', code: 200 },
  create: { line: POST, body: 'whole', code: 200 },
  chunks: { line: POST, body: 'chunks', code: 200 },
  expect: { line: POST, body: 'whole', fields: `${HOST}Expect: 100-continue\r\n`, code: 200 },
  wide: { line: 'GET /plants', fields: `${HOST}X: ${' '.repeat(700)}\r\n`, code: 200 },
  delete: { line: 'DELETE /plants/7', code: 40401 },
  options: { line: 'OPTIONS /plants', code: 204 },
  unknown: { line: 'GET /nothing', code: 40400 },
  wrong: { line: POST, body: 'whole', token: 'none', code: 40101 },
} satisfies Readonly<Record<string, Kind>>

/** Behind these, nothing is carried out. */
const LAST = {
  close: { line: 'GET /plants', fields: `${HOST}Connection: close\r\n`, code: 200, closes: true },
  noHost: { line: 'GET /plants', fields: '', code: 40000, closes: true },
  strange: { line: POST, body: 'whole', fields: `${HOST}Expect: rain\r\n`, code: 41700, closes: true },
  large: { line: POST, body: 'whole', length: 70_000, code: 41300, closes: true },
  broken: { line: POST, body: 'broken', code: 40000, closes: true, isEndless: true },
  connect: { line: 'CONNECT', code: 40000, closes: true, isEndless: true },
  nonsense: { line: 'Nonsense', code: 40000, closes: true, isEndless: true },
} satisfies Readonly<Record<string, Kind>>

export const [MOST, CLOSING] = [Object.keys(GOING_ON), Object.keys(LAST)]
export const KINDS: Readonly<Record<string, Kind>> = { ...GOING_ON, ...LAST }

/** The bytes of a request; its body may be announced to be longer. */
export function write({ line, token = 'ada', fields = HOST, body, length }: Kind, number: number): [string, string] {
  const text = `{"id":${number},"name":"plant ${number}"}`
  const [framing, content] = {
    none: ['', ''],
    whole: [`Content-Length: ${length ?? text.length}\r\n`, text],
    chunks: ['Transfer-Encoding: chunked\r\n', `9\r\n${text.slice(0, 9)}\r\n${chunk(text.slice(9))}0\r\n\r\n`],
    broken: ['Transfer-Encoding: chunked\r\n', 'five\r\n'],
  }[body ?? 'none'] as [string, string]
  const target = line === 'CONNECT' ? ' a:80' : `?n=${number}`
  const type = body === undefined ? '' : 'Content-Type: application/json\r\n'
  return [`${line}${target} HTTP/1.1\r\n${fields}Authorization: Bearer ${token}\r\n${type}${framing}\r\n`, content]
}

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`
}
