// Runs one contestant and its client in the same process, connected by in-memory streams instead of sockets. The server
// reads the requests that the client pushes, and the client counts the bytes that the server writes.
import { once } from 'node:events'
import type { Server } from 'node:http'
import { PerformanceObserver } from 'node:perf_hooks'
import process from 'node:process'
import { Duplex } from 'node:stream'
import { CASES } from '../cases.ts'
import { type ExpectedResponse, ResponseReader } from '../response-reader.ts'
import type { ProcessOptions, SliceResult, SliceLimits } from './measure.ts'

/** An in-memory connection. The server uses it as a socket, and the client sends its requests with `sendRequest`. */
class Connection extends Duplex {
  /**
   * The number of response bytes that are still to come, if this response is as long as the first one was. May become
   * negative, because request IDs grow.
   */
  remainingBytes = 0
  /** Receives the bytes of a response during setup. Measured responses are only counted. */
  onData: ((bytes: Buffer) => void) | undefined

  sendRequest(request: Buffer, remainingBytes: number): void {
    this.remainingBytes = remainingBytes
    this.push(request)
  }

  override _read(): void {
    // Nothing to do: the client pushes its next request once the previous response is complete.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, callback: () => void): void {
    this.remainingBytes -= chunk.length
    this.onData?.(chunk)
    callback()
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], callback: () => void): void {
    for (const { chunk } of chunks) this._write(chunk, 'latin1', () => undefined)
    callback()
  }
}

const {
  case: name,
  file,
  isConstant,
  contestantSettings,
  connections: connectionCount,
  requests,
  warmUp,
} = JSON.parse(process.argv[2]!) as ProcessOptions
const theCase = CASES.find((each) => each.name === name)!
const { seedCount, seedRequest, request } = theCase
// Prepare the requests before the server starts. Otherwise the standalone server's overload guard would mistake this
// work for a busy event loop.
const [warmUpRequests, measuredRequests] = [
  prepareRequests(request, 1, warmUp),
  prepareRequests(request, 1 + warmUp, requests),
]
const { default: listen } = (await import(file)) as { default: (given: object) => Server | Promise<Server> }
const server = await listen(contestantSettings)
// Wait until the server is listening. Node doesn't track requests on connections that were opened earlier, which would
// save CPU time and distort the results.
if (!server.listening) await once(server, 'listening')

const connections = Array.from({ length: connectionCount }, () => {
  const connection = new Connection({ decodeStrings: true })
  connection.on('close', () => {
    throw new Error('The server closed a connection.')
  })
  server.emit('connection', connection)
  return connection
})

/** Sends one request and returns the length of the response in bytes. */
async function requestOnce(
  requestText: string,
  expectedResponse: ExpectedResponse = theCase.expectedResponse,
): Promise<number> {
  const [connection] = connections
  const reader = new ResponseReader(expectedResponse)
  return new Promise((resolve, reject) => {
    let length = 0
    connection!.onData = (bytes) => {
      length += bytes.length
      try {
        if (reader.read(bytes) === 0) return
      } catch (error) {
        reject(error)
      }
      connection!.onData = undefined
      // Wait until the server has finished handling the request.
      setImmediate(() => {
        connection!.remainingBytes = 0
        resolve(length)
      })
    }
    connection!.sendRequest(Buffer.from(requestText, 'latin1'), Infinity)
  })
}

/**
 * Encodes all requests in a run ahead of time, so that encoding doesn't count toward their cost. All of these requests
 * have the same length.
 */
function prepareRequests(requestAt: (n: number) => string, start: number, total: number): (n: number) => Buffer {
  const first = Buffer.from(requestAt(start), 'latin1')
  if (requestAt(start + 1) === requestAt(start)) return () => first
  const all = Buffer.alloc(first.length * total)
  for (let n = 0; n < total; n++) all.write(requestAt(start + n), n * first.length, 'latin1')
  return (n) => all.subarray(n * first.length, (n + 1) * first.length)
}

/**
 * Sends requests on all connections, one at a time on each. Checks for complete responses in every event-loop tick.
 * Returns the number of requests.
 */
function runRequests(
  requestAt: (n: number) => Buffer,
  total: number,
  expectedBytes: number,
  endsAt = Infinity,
): Promise<number> {
  let sent = 0
  return new Promise((resolve) => {
    function tick(): void {
      const isDone = sent >= total || performance.now() >= endsAt
      let hasPending = false
      for (const connection of connections) {
        if (connection.remainingBytes > 0) hasPending = true
        else if (!isDone && sent < total) connection.sendRequest(requestAt(sent++), expectedBytes)
      }
      if (isDone && !hasPending) resolve(sent)
      else setImmediate(tick)
    }
    tick()
  })
}

// Make V8 compile `nextTick` now. If V8 does so later, `nextTick` takes five times as long in some processes, for as
// long as they run.
await new Promise<void>((resolve) => {
  let left = 100_000
  const tick = (): void => (--left > 0 ? process.nextTick(tick) : resolve())
  tick()
})

if (!isConstant) {
  const total = typeof seedCount === 'number' ? seedCount : 1 + warmUp + requests
  for (let n = 0; n < total; n++) await requestOnce(seedRequest(n), { status: 200 })
}
const responseLength = await requestOnce(request(0))
await runRequests(warmUpRequests, warmUp, responseLength)

let gcMicroseconds = 0
const observer = new PerformanceObserver((list) => recordGc(list.getEntries()))
observer.observe({ type: 'gc' })
function recordGc(entries: readonly { readonly duration: number }[]): void {
  for (const { duration } of entries) gcMicroseconds += 1000 * duration
}

let totalSent = 0
async function measure({ requests, seconds }: SliceLimits): Promise<void> {
  gcMicroseconds = 0
  const start = totalSent
  const before = process.cpuUsage()
  const responseCount = await runRequests(
    (n) => measuredRequests(start + n),
    requests,
    responseLength,
    performance.now() + 1000 * seconds,
  )
  const { user, system } = process.cpuUsage(before)
  recordGc(observer.takeRecords())
  totalSent += responseCount
  process.send!({ responseCount, cpu: user + system, system, gc: gcMicroseconds } satisfies SliceResult)
}
process.on('message', (limits: SliceLimits) => void measure(limits))
process.on('disconnect', () => process.exit())
process.send!(responseLength - theCase.expectedResponse.body.length)
