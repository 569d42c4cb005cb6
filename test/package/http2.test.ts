import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect as connectHttp2, constants, type ClientHttp2Session, type IncomingHttpHeaders } from 'node:http2'
import { connect } from 'node:net'
import { Duplex } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { TLS } from '../support/wire/tls/certificate.ts'
import { HOST_EXAMPLES, protocolOf, startExample, type Example } from '../support/package/examples.ts'

const { NGHTTP2_NO_ERROR: NO_ERROR, NGHTTP2_CANCEL: CANCEL } = constants

const RECIPE = HOST_EXAMPLES.find(({ code }) => protocolOf(code) === 'h2')!.code

const PREFACE = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0, '')])

function frame(type: number, flags: number, stream: number, payload: string): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head.writeUIntBE(type, 3, 1)
  head.writeUIntBE(flags, 4, 1)
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, Buffer.from(payload, 'latin1')])
}

function headers(stream: number, fields: Readonly<Record<string, string>>): Buffer {
  const text = (text: string): string => String.fromCharCode(text.length) + text
  const block = Object.entries(fields).map(([name, value]) => `\0${text(name)}${text(value)}`)
  return frame(1, 4, stream, block.join(''))
}

const data = (stream: number): Buffer => frame(0, 0, stream, '{"id":')
const reset = (stream: number, code: number): Buffer => frame(3, 0, stream, `\0\0\0${String.fromCharCode(code)}`)

/**
 * Sends each of these in a TLS record of its own, and all of them in one packet. While Node writes the answer to a
 * first request, it puts off what follows the data of that request. So it learns of a second one and of its reset at
 * once.
 */
async function sendAtOnce(port: number, ...records: readonly Buffer[]): Promise<void> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true }).on('error', () => undefined)
  let held: Buffer[] | undefined
  const wire = new Duplex({
    read: () => undefined,
    write(bytes: Buffer, _, done) {
      if (held === undefined) socket.write(bytes)
      else held.push(bytes)
      done()
    },
  })
  socket.on('data', (bytes) => wire.push(bytes)).on('close', () => wire.destroy())
  const tls = connectTls({ socket: wire, ALPNProtocols: ['h2'], ca: TLS.cert, host: '127.0.0.1' })
  tls.on('error', () => undefined)
  await once(tls, 'secureConnect')
  tls.write(PREFACE)
  await pong(tls)
  held = []
  for (const record of records) await new Promise((resolve) => tls.write(record, resolve))
  socket.write(Buffer.concat(held))
  held = undefined
  await pong(tls)
  socket.destroy()
}

/** Settles once the server has read all that was sent. */
async function pong(tls: TLSSocket): Promise<void> {
  const question = randomBytes(8).toString('latin1')
  tls.write(frame(6, 0, 0, question))
  for await (const bytes of tls.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>)
    if (bytes.includes(question, 0, 'latin1')) return
}

async function startRecipe(t: TestContext): Promise<Example & { session: ClientHttp2Session }> {
  const example = await startExample(t, RECIPE)
  const session = connectHttp2(`https://127.0.0.1:${example.port}`, { ca: TLS.cert }).on('error', () => undefined)
  t.after(() => session.destroy())
  return { ...example, session }
}

/** Asks whether the body is wanted, and sends it if so. Gives the status, and whether it was. */
async function expectContinue(session: ClientHttp2Session, token: string): Promise<[unknown, boolean]> {
  const stream = session.request({
    ':method': 'POST',
    ':path': '/plants',
    authorization: `Bearer ${token}`,
    'content-type': 'application/json',
    expect: '100-continue',
  })
  let isWanted = false
  stream.once('continue', () => {
    isWanted = true
    stream.end('{"id":1,"name":"Fern"}')
  })
  const [received] = (await once(stream, 'response')) as [IncomingHttpHeaders]
  stream.destroy()
  return [received[':status'], isWanted]
}

test('the example with HTTP/2 goes on after a request is reset at once', async (t) => {
  const { port, session } = await startRecipe(t)
  const request = { ':method': 'POST', ':path': '/plants', ':scheme': 'https', ':authority': 'localhost' }
  const good = { authorization: 'Bearer a-long-random-token', 'content-type': 'application/json' }
  const requests = {
    'with a token': { ...request, ...good },
    'without a token': request,
    'with a token, that waits for 100 Continue': { ...request, ...good, expect: '100-continue' },
    'without a token, that waits for 100 Continue': { ...request, expect: '100-continue' },
    'with an Expect that is none': { ...request, expect: 'more' },
  }
  for (const [name, fields] of Object.entries(requests)) {
    for (const code of [NO_ERROR, CANCEL]) {
      const second = Buffer.concat([data(1), headers(3, fields), reset(3, code)])
      // Whether one does it depends on what the server is writing just then.
      for (let i = 0; i < 10; i++) await sendAtOnce(port, headers(1, { ...request, expect: '100-continue' }), second)
      const [status, isWanted] = await expectContinue(session, 'another')
      assert.deepEqual([name, code, status, isWanted], [name, code, 401, false])
    }
  }
})

test('the example with HTTP/2 asks for the body only of a client that may send it', async (t) => {
  const { session } = await startRecipe(t)
  assert.deepEqual(await expectContinue(session, 'a-long-random-token'), [200, true])
  assert.deepEqual(await expectContinue(session, 'another'), [401, false])
})
