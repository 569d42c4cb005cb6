import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { constants } from 'node:http2'
import { test } from 'node:test'
import { connect } from 'node:tls'
import { HOST_EXAMPLES, protocolOf, startExample } from '../support/package/examples.ts'
import { connectTo } from '../support/wire/client.ts'
import { get, post } from '../support/wire/service.ts'
import { TLS } from '../support/wire/tls/certificate.ts'

const { NGHTTP2_NO_ERROR: NO_ERROR, NGHTTP2_CANCEL: CANCEL } = constants

const RECIPE = HOST_EXAMPLES.find(({ code }) => protocolOf(code) === 'h2')!.code
const TOKEN = 'a-long-random-token'

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

const PREFACE = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(4, 0, 0, '')])

/** Fills a TLS record before a frame with one of an unknown type. */
const fillRecord = (last: Buffer): Buffer => frame(0xfe, 0, 0, ' '.repeat(16_384 - 9 - last.length))

/**
 * Sends a request and what follows it in one packet, in a TLS record each. While Node writes the answer to the request,
 * it puts off what follows the data of that request. So it learns of a second one and of its reset at once.
 */
async function sendAtOnce(port: number, request: Buffer, following: Buffer): Promise<void> {
  const tls = connect({ port, host: '127.0.0.1', ALPNProtocols: ['h2'], ca: TLS.cert })
  for (const sent of [[PREFACE], [fillRecord(request), request, following]]) {
    const question = randomBytes(8).toString('latin1')
    tls.write(Buffer.concat([...sent, frame(6, 0, 0, question)]))
    for await (const bytes of tls.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>)
      if (bytes.includes(question, 0, 'latin1')) break
  }
  tls.destroy()
}

test('the example with HTTP/2 goes on after a request is reset at once', async (t) => {
  const { port } = await startExample(t, RECIPE)
  const client = connectTo('h2', port)
  const request = { ':method': 'POST', ':path': '/plants', ':scheme': 'https', ':authority': 'localhost' }
  const good = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
  const waiting = { ...request, expect: '100-continue' }
  const requests = {
    'with a token': { ...request, ...good },
    'without a token': request,
    'with a token, that waits for 100 Continue': { ...waiting, ...good },
    'without a token, that waits for 100 Continue': waiting,
    'with an Expect that is none': { ...request, expect: 'more' },
  }
  for (const [name, fields] of Object.entries(requests)) {
    for (const code of [NO_ERROR, CANCEL]) {
      const reset = frame(3, 0, 3, `\0\0\0${String.fromCharCode(code)}`)
      const following = Buffer.concat([frame(0, 0, 1, '{"id":'), headers(3, fields), reset])
      // Whether one does it depends on what the server is writing just then.
      for (let i = 0; i < 10; i++) await sendAtOnce(port, headers(1, waiting), following)
      assert.equal((await client.send(get(TOKEN))).status, 200, `${name}, ${code}`)
    }
  }
  client.close()
})

test('the example with HTTP/2 asks for the body only of a client that may send it', async (t) => {
  const client = connectTo('h2', (await startExample(t, RECIPE)).port)
  for (const [token, status, isWanted] of [
    [TOKEN, 200, true],
    ['another', 401, false],
  ] as const) {
    const plant = '{"id":1,"name":"Fern"}'
    const stream = client.open(post(token, plant, ['Expect', '100-continue']))
    let isAsked = false
    stream.once('continue', () => {
      isAsked = true
      stream.end(plant)
    })
    const [received] = (await once(stream, 'response')) as [Record<string, unknown>]
    stream.destroy()
    assert.deepEqual([received[':status'], isAsked], [status, isWanted])
  }
  client.close()
})
