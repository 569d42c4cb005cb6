import assert from 'node:assert/strict'
import type { RequestListener } from 'node:http'
import { suite, test, type TestContext } from 'node:test'
import { Client, type Load } from '../../bench/load.ts'
import { computeRatios } from '../../bench/report/table.ts'
import { ResponseReader } from '../../bench/response-reader.ts'
import { TimeLeft } from '../../bench/report/time-left.ts'
import { median, medianInterval, percentile, Samples } from '../../bench/report/statistics.ts'
import { getPort, serve } from '../support/wire/service.ts'

const JSON_HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'
const WITH_LENGTH = `${JSON_HEAD}Content-Length: 5\r\n\r\n[1,2]`
const CHUNKED = `${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n3;ext=1\r\n,2]\r\n0\r\nExpires: 0\r\n\r\n`
const NO_CONTENT = 'HTTP/1.1 204 No Content\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n'

suite('ResponseReader', () => {
  for (const [name, text, expected] of [
    ['responses with Content-Length', WITH_LENGTH, { status: 200, body: Buffer.from('[1,2]') }],
    ['chunked responses', CHUNKED, { status: 200, body: Buffer.from('[1,2]') }],
    ['responses without an expected body', WITH_LENGTH, { status: 200 }],
    ['204 responses', NO_CONTENT, { status: 204, body: Buffer.from('') }],
  ] as const) {
    test(`counts ${name} split into pieces of any size`, () => {
      const bytes = Buffer.from(text.repeat(3))
      for (let size = 1; size <= bytes.length; size++) {
        const reader = new ResponseReader(expected)
        let count = 0
        for (let start = 0; start < bytes.length; start += size) {
          count += reader.read(bytes.subarray(start, start + size))
        }
        assert.equal(count, 3, `in pieces of ${size} bytes`)
      }
    })
  }

  for (const [name, text, message] of [
    ['an unexpected status', 'HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\noops', /^status 500 instead of 200: oops$/],
    ['an unexpected body', WITH_LENGTH.replace('[1,2]', '[1,3]'), /^unexpected body, starting at byte 0: \[1,3\]$/],
    ['a shorter body', WITH_LENGTH.replace('5\r\n\r\n[1,2]', '4\r\n\r\n[1,2'), /^body of 4 bytes instead of 5$/],
    ['a missing chunk', CHUNKED.replace('3;ext=1\r\n,2]\r\n', ''), /^body of 2 bytes instead of 5$/],
    ['an unexpected Content-Type', WITH_LENGTH.replace('application/json', 'text/html'), /^Content-Type "text\/html"/],
    ['a missing Content-Length', `${JSON_HEAD}\r\n`, /^head without a status or a length/],
    ['an invalid chunk size', CHUNKED.replace('2\r\n', 'x\r\n'), /^invalid chunk size "x"$/],
  ] as const) {
    test(`throws for ${name}`, () => {
      const reader = new ResponseReader({ status: 200, body: Buffer.from('[1,2]') })
      assert.throws(() => reader.read(Buffer.from(text)), { name: 'UnexpectedResponseError', message })
    })
  }
})

suite('Client', () => {
  async function send(t: TestContext, listener: RequestListener, load: Partial<Load>) {
    const client = await Client.connect(getPort(await serve(t, listener)), 3)
    t.after(() => client.close())
    const request = (n: number): string => `GET /${n} HTTP/1.1\r\nHost: test\r\n\r\n`
    return client.send({ request, expectedResponse: { status: 204 }, ...load })
  }

  for (const pipelining of [1, 4]) {
    test(`sends each request once and waits for all responses (pipelining: ${pipelining})`, async (t) => {
      const seen = new Set<string>()
      const listener: RequestListener = (req, res) => {
        seen.add(req.url!)
        res.writeHead(204).end()
      }
      const { responseCount, latencies } = await send(t, listener, { requests: 100, pipelining })
      assert.deepEqual([responseCount, latencies.length], [100, 100])
      assert.deepEqual(seen, new Set(Array.from({ length: 100 }, (_, n) => `/${n}`)))
    })
  }

  test('sends requests for at least the given time', async (t) => {
    const { responseCount, seconds } = await send(t, (_, res) => res.writeHead(204).end(), { seconds: 0.05 })
    assert.ok(responseCount > 0)
    assert.ok(seconds >= 0.05)
  })

  test('rejects if a response has an unexpected status', async (t) => {
    const listener: RequestListener = (req, res) => res.writeHead(req.url === '/50' ? 404 : 204).end()
    await assert.rejects(send(t, listener, { requests: 100 }), { name: 'UnexpectedResponseError' })
  })

  test('rejects if the server closes a connection', async (t) => {
    const listener: RequestListener = (req) => req.socket.destroy()
    await assert.rejects(send(t, listener, { requests: 1 }), { message: 'the server closed a connection' })
  })
})

suite('TimeLeft', () => {
  test('estimates the time from the duration at first, and later from the finished runs', () => {
    const timeLeft = new TimeLeft(100, 2)
    assert.equal(String(timeLeft), '9 min')
    timeLeft.finish(1, 89)
    assert.equal(String(timeLeft), '1 s')
  })
})

suite('statistics', () => {
  test('percentile returns the nearest-rank value of 3,000 samples', () => {
    const samples = new Samples()
    for (let value = 3000; value > 0; value--) samples.add(value)
    assert.equal(samples.count, 3000)
    const seen = [0, 50, 99.9, 100].map((percent) => percentile(samples.sorted(), percent))
    assert.deepEqual(seen, [1, 1500, 2997, 3000])
    assert.equal(percentile(new Samples().sorted(), 50), NaN)
  })

  test('median returns the middle value, or the mean of the two middle values', () => {
    assert.deepEqual([[10, 1, 9], [10, 1, 9, 2], []].map(median), [9, 5.5, NaN])
  })

  test('medianInterval narrows as the number of values grows', () => {
    assert.deepEqual(medianInterval([]), [NaN, NaN])
    const [few, many] = [5, 40].map((length) => medianInterval(Array.from({ length }, (_, n) => n % 5)))
    assert.ok(few![0] < many![0] && many![0] <= 2 && 2 <= many![1] && many![1] < few![1])
  })

  test('computeRatios compares plant-store with each of the other contestants', () => {
    const rounds = { floor: [1, 2], native: [2, 4], 'plant-store': [1, 2] }
    const rows = Object.entries(rounds).map(([contestant, cpus]) => {
      return { contestant, rounds: cpus.map((cpu) => ({ cpu })) }
    })
    assert.deepEqual(computeRatios(rows), [
      { contestant: 'native', base: 'floor', median: 2, interval: [2, 2] },
      { contestant: 'plant-store', base: 'floor', median: 1, interval: [1, 1] },
      { contestant: 'plant-store', base: 'native', median: 0.5, interval: [0.5, 0.5] },
    ])
  })
})
