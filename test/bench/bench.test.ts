import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { suite, test } from 'node:test'
import { Client, type Load } from '../../bench/load.ts'
import { ratios, type Row } from '../../bench/report/table.ts'
import { ResponseReader } from '../../bench/response-reader.ts'
import { median, medianInterval, percentile, Samples } from '../../bench/report/statistics.ts'
import { listen, portOf } from '../support/wire/service.ts'

const JSON_HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n'
const WITH_LENGTH = `${JSON_HEAD}Content-Length: 5\r\n\r\n[1,2]`
const CHUNKED = `${JSON_HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\n[1\r\n3;ext=1\r\n,2]\r\n0\r\nExpires: 0\r\n\r\n`
const NO_CONTENT = 'HTTP/1.1 204 No Content\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n'

suite('the reader of answers', () => {
  for (const [name, text, status, body] of [
    ['a length', WITH_LENGTH, 200, '[1,2]'],
    ['chunks', CHUNKED, 200, '[1,2]'],
    ['no body', NO_CONTENT, 204, ''],
  ] as const) {
    test(`reads answers with ${name}, in pieces of any size`, () => {
      const bytes = Buffer.from(text.repeat(3))
      for (let size = 1; size <= bytes.length; size++) {
        const reader = new ResponseReader({ status, body: Buffer.from(body) })
        let answers = 0
        for (let at = 0; at < bytes.length; at += size) answers += reader.read(bytes.subarray(at, at + size))
        assert.equal(answers, 3, `in pieces of ${size}`)
      }
    })
  }

  test('takes any body if none is given', () => {
    assert.equal(new ResponseReader({ status: 200 }).read(Buffer.from(WITH_LENGTH + CHUNKED)), 2)
  })

  for (const [name, text, message] of [
    ['another status', 'HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\noops', /^status 500 instead of 200: oops$/],
    ['another body', WITH_LENGTH.replace('[1,2]', '[1,3]'), /^another body than expected, from byte 0 on: \[1,3\]$/],
    ['a longer body', WITH_LENGTH.replace('5\r\n\r\n[1,2]', '6\r\n\r\n[1,2] '), /^another body than expected/],
    ['a shorter body', WITH_LENGTH.replace('5\r\n\r\n[1,2]', '4\r\n\r\n[1,2'), /^4 bytes instead of 5$/],
    ['a chunk too few', CHUNKED.replace('3;ext=1\r\n,2]\r\n', ''), /^2 bytes instead of 5$/],
    ['no body', WITH_LENGTH.replace('5\r\n\r\n[1,2]', '0\r\n\r\n'), /^0 bytes instead of 5$/],
    ['another type', WITH_LENGTH.replace('application/json', 'text/html'), /^Content-Type "text\/html"/],
    ['no length', `${JSON_HEAD}\r\n`, /^a head that says no status or no length/],
    ['a chunk of no size', CHUNKED.replace('2\r\n', 'x\r\n'), /^"x" where the size of a chunk is due$/],
  ] as const) {
    test(`refuses ${name}`, () => {
      const reader = new ResponseReader({ status: 200, body: Buffer.from('[1,2]') })
      assert.throws(() => reader.read(Buffer.from(text)), { name: 'WrongAnswerError', message })
    })
  }
})

suite('the client', () => {
  async function send(listener: RequestListener, load: Partial<Load>): Promise<ReturnType<Client['send']>> {
    const server = createServer(listener)
    await listen(server)
    const client = await Client.connect(portOf(server), 3)
    try {
      const request = (n: number): string => `GET /${n} HTTP/1.1\r\nHost: test\r\n\r\n`
      return await client.send({ request, answer: { status: 204 }, ...load })
    } finally {
      client.close()
      server.close()
    }
  }

  for (const pipelining of [1, 4]) {
    test(`sends each request once and waits for every answer, ${pipelining} at a time`, async () => {
      const seen: string[] = []
      const { answered, latencies } = await send(
        (req, res) => {
          seen.push(req.url ?? '')
          res.writeHead(204).end()
        },
        { requests: 100, pipelining },
      )
      assert.deepEqual([answered, latencies.length], [100, 100])
      assert.deepEqual(new Set(seen), new Set(Array.from({ length: 100 }, (_, n) => `/${n}`)))
    })
  }

  test('ends when the time is up', async () => {
    const { answered, seconds } = await send((_, res) => res.writeHead(204).end(), { seconds: 0.05 })
    assert.ok(answered > 0)
    assert.ok(seconds >= 0.05)
  })

  test('fails at the first wrong answer', async () => {
    const listener: RequestListener = (req, res) => res.writeHead(req.url === '/50' ? 404 : 204).end()
    await assert.rejects(send(listener, { requests: 100 }), { name: 'WrongAnswerError' })
  })

  test('fails if the server closes a connection', async () => {
    const listener: RequestListener = (req) => req.socket.destroy()
    await assert.rejects(send(listener, { requests: 1 }), { message: 'the server closed a connection' })
  })
})

suite('the statistics', () => {
  test('keeps more samples than it began with room for', () => {
    const samples = new Samples()
    for (let value = 3000; value > 0; value--) samples.add(value)
    assert.equal(samples.count, 3000)
    const expected = Float64Array.from({ length: 3000 }, (_, n) => n + 1)
    assert.deepEqual(samples.sorted(), expected)
  })

  test('takes percentiles by the nearest rank', () => {
    const sorted = Float64Array.from({ length: 1000 }, (_, n) => n + 1)
    const seen = [0, 50, 99.9, 100].map((percent) => percentile(sorted, percent))
    assert.deepEqual(seen, [1, 500, 999, 1000])
    assert.equal(percentile(new Float64Array(), 50), NaN)
  })

  test('takes the middle value as the median, or the mean of two', () => {
    assert.equal(median([10, 1, 9]), 9)
    assert.equal(median([10, 1, 9, 2]), 5.5)
    assert.equal(median([]), NaN)
  })

  test('says where a median lies: nearer to it the more values there are and the closer they lie', () => {
    assert.deepEqual(medianInterval([2, 2, 2]), [2, 2])
    assert.deepEqual(medianInterval([]), [NaN, NaN])
    const width = (values: number[]): number => {
      const [low, high] = medianInterval(values)
      assert.ok(low <= median(values) && median(values) <= high)
      return high - low
    }
    const spread = (count: number, by: number): number[] => Array.from({ length: count }, (_, n) => 1 + (n % 5) * by)
    assert.ok(width(spread(40, 0.1)) < width(spread(5, 0.1)))
    assert.ok(width(spread(10, 0.01)) < width(spread(10, 0.1)))
  })
})

suite('the report', () => {
  function row(contestant: string, ...cpus: number[]): Row {
    return { contestant, rounds: cpus.map((cpu) => ({ cpu })) }
  }
  const rows = [row('floor', 1, 2), row('native', 2, 4), row('plant-store', 1, 2)]

  test('has ratios to the first, and of this service to the others, each within its round', () => {
    assert.deepEqual(ratios(rows), [
      { contestant: 'native', of: 'floor', median: 2, interval: [2, 2] },
      { contestant: 'plant-store', of: 'floor', median: 1, interval: [1, 1] },
      { contestant: 'plant-store', of: 'native', median: 0.5, interval: [0.5, 0.5] },
    ])
  })
})
