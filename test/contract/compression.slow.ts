import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { constants, type ClientHttp2Stream, type IncomingHttpHeaders } from 'node:http2'
import { pipeline } from 'node:stream/promises'
import { after, suite, test, type TestContext } from 'node:test'
import { createBrotliDecompress, createGunzip } from 'node:zlib'
import { createPlantStore } from '../../src/index.ts'
import { createProcessClock } from '../support/event-loop.ts'
import { skipWithoutPeers } from '../support/extra-packages.ts'
import { measureMemoryUsed } from '../support/memory-usage.ts'
import { waitUntil } from '../support/wait-until.ts'
import { openResponse, serve } from '../support/service.ts'
import { decodeBody, serveAndConnect, type Client } from '../support/client.ts'
import { createLongListStore, getWithEncoding, LIST_BODIES } from './long-lists.ts'
import { loadMiddleware } from './middleware.ts'

// MaxListenersExceededWarning must not occur. The PlantStoreWarning about the truncated list is expected.
const warnings: Error[] = []
process.on('warning', (warning) => warning.name === 'PlantStoreWarning' || warnings.push(warning))
after(() => assert.deepEqual(warnings, []))

suite('compression for a slow client', { skip: skipWithoutPeers, timeout: 300_000 }, () => {
  for (const coding of ['gzip', 'br']) {
    test(`a list of 200,000 plants, compressed with ${coding}, takes less than 2 MiB of memory`, async (t) => {
      const plantStore = createPlantStore({ authenticate: (token) => token, store: createLongListStore() })
      const compress = await loadMiddleware('compression')
      let sent: ServerResponse | undefined
      const server = await serve(t, (request, response) => {
        sent = response
        compress(request, response, () => plantStore(request, response))
      })
      const decoder = coding === 'gzip' ? createGunzip() : createBrotliDecompress()
      const digest = createHash('sha256')
      const decoding = pipeline(decoder, digest)

      // Warm up, so that the code and the JSON that the memory store keeps for each plant aren't measured.
      await (await openResponse(server, getWithEncoding('many', coding))).toArray()
      const before = await measureMemoryUsed()
      const response = await openResponse(server, getWithEncoding('many', coding))
      const costs: number[] = []
      let received = 0
      for await (const chunk of response) {
        // Wait until the server's buffer is full, so that the client is always slower.
        await waitUntil(() => sent!.writableNeedDrain || sent!.writableFinished)
        received += (chunk as Buffer).length
        if (received > costs.length * 1_000_000) costs.push((await measureMemoryUsed()) - before)
        if (!decoder.write(chunk)) await once(decoder, 'drain')
      }
      decoder.end()
      await decoding

      assert.equal(digest.digest('hex'), createHash('sha256').update(LIST_BODIES.get('many')!).digest('hex'))
      assert.ok(costs.length > 5 && Math.max(...costs) < 2 * 2 ** 20, costs.join())
    })
  }
})

suite('on HTTP/2, behind compression', { skip: skipWithoutPeers, timeout: 300_000 }, () => {
  async function serveCompressed(t: TestContext): Promise<Client> {
    const plantStore = createPlantStore({ authenticate: (token) => token, store: createLongListStore() })
    const compress = await loadMiddleware('compression', { threshold: 0 })
    return serveAndConnect(t, 'h2c', (request, response) =>
      compress(request, response, () => plantStore(request, response)),
    )
  }

  for (const coding of ['gzip', 'br']) {
    test(`sends a complete list of 200,000 plants, compressed with ${coding}`, async (t) => {
      const { status, headers, body } = await (await serveCompressed(t)).send(getWithEncoding('many', coding))

      const own = { 'content-type': 'application/json', 'cache-control': 'no-store' }
      const fields = { ...own, 'content-encoding': coding, vary: 'Accept-Encoding' }
      assert.deepEqual({ status, headers }, { status: 200, headers: fields })
      assert.ok(body === LIST_BODIES.get('many'), `${body.length} characters`)
    })

    test(`rejects an upload immediately with a complete response, compressed with ${coding}`, async (t) => {
      const client = await serveCompressed(t)
      const elapsed = createProcessClock()
      const request = { method: 'POST', path: '/plants', fields: ['Accept-Encoding', coding], body: 'aa' }
      const upload = client.open(request) as unknown as ClientHttp2Stream
      const chunks: Buffer[] = []
      upload.on('data', (chunk: Buffer) => chunks.push(chunk)).write('a')

      const [headers] = (await once(upload, 'response')) as [IncomingHttpHeaders]
      const ms = elapsed()
      await once(upload, 'close')

      assert.deepEqual([headers[':status'], headers['content-encoding']], [401, coding])
      const { error } = JSON.parse(decodeBody(coding, Buffer.concat(chunks))) as { error: number }
      assert.equal(error, 40100)
      assert.ok(ms < 1900, `the response took ${ms} ms`)
      assert.equal(upload.rstCode, constants.NGHTTP2_NO_ERROR)
    })
  }

  test('aborts the stream when a list fails', async (t) => {
    const client = await serveCompressed(t)
    await assert.rejects(client.send(getWithEncoding('failing', 'gzip')), { code: 'ERR_HTTP2_STREAM_ERROR' })
  })
})
