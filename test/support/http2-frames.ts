/** Encodes HTTP/2 frames (RFC 9113) that Node's client never sends, such as a body without END_STREAM. */
import { constants } from 'node:http2'

const { NGHTTP2_FLAG_END_HEADERS, NGHTTP2_FLAG_END_STREAM } = constants
const [DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY] = [0, 1, 3, 4, 7] as const

/** Most tests open only this stream. */
const STREAM_ID = 1

function encodeFrame(type: number, flags: number, stream: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUInt8(type, 3)
  head.writeUInt8(flags, 4)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

function encodeUint32(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, 4 * i)
  return bytes
}

/** Encodes an HPACK string literal (RFC 7541 section 5.2) of at most 126 bytes. */
const encodeLiteral = (text: string): Buffer => Buffer.concat([Buffer.of(text.length), Buffer.from(text)])

export const PREFACE: Buffer = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  encodeFrame(SETTINGS, 0, 0, Buffer.alloc(0)),
])

/** Encodes header fields or trailers as literals without indexing (RFC 7541 section 6.2.2). */
export function encodeHeaders(fields: Readonly<Record<string, string>>, endsStream = false): Buffer {
  const block = Object.entries(fields).flatMap(([name, value]) => [
    Buffer.of(0),
    encodeLiteral(name),
    encodeLiteral(value),
  ])
  const flags = NGHTTP2_FLAG_END_HEADERS | (endsStream ? NGHTTP2_FLAG_END_STREAM : 0)
  return encodeFrame(HEADERS, flags, STREAM_ID, Buffer.concat(block))
}

export const encodeData = (text: string, endsStream = false): Buffer =>
  encodeFrame(DATA, endsStream ? NGHTTP2_FLAG_END_STREAM : 0, STREAM_ID, Buffer.from(text))

export const encodeRstStream = (code: number, streamId = STREAM_ID): Buffer =>
  encodeFrame(RST_STREAM, 0, streamId, encodeUint32(code))

export const encodeGoaway = (code: number): Buffer => encodeFrame(GOAWAY, 0, 0, encodeUint32(0, code))
