// The process of one contestant that is asked without the kernel: what a connection in memory gets, the server of the
// contestant reads, and what the server writes is counted.
import { once } from 'node:events'
import type { Server } from 'node:http'
import { PerformanceObserver } from 'node:perf_hooks'
import process from 'node:process'
import { Duplex } from 'node:stream'
import { CASES } from '../cases.ts'
import { type ExpectedResponse, ResponseReader } from '../response-reader.ts'
import type { ProcessOptions, SliceResult, SliceLimits } from './measure.ts'

/** A client and its connection. */
class Connection extends Duplex {
  /** Bytes of the answer that are still to come. It has as many as the first one had, or more: ids of requests grow. */
  remainingBytes = 0
  /** Gets the answers, until they are all of the same length. */
  onData: ((bytes: Buffer) => void) | undefined

  sendRequest(request: Buffer, remainingBytes: number): void {
    this.remainingBytes = remainingBytes
    this.push(request)
  }

  override _read(): void {
    // A request comes once the one before it is answered.
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
// Before there is a server: the guard of the program would take that time for a round of the server.
const [warmUpRequests, measuredRequests] = [
  prepareRequests(request, 1, warmUp),
  prepareRequests(request, 1 + warmUp, requests),
]
const { default: listen } = (await import(file)) as { default: (given: object) => Server | Promise<Server> }
const server = await listen(contestantSettings)
// Node tracks no request of a connection that was there before, which would save a part of its time.
if (!server.listening) await once(server, 'listening')

const connections = Array.from({ length: connectionCount }, () => {
  const connection = new Connection({ decodeStrings: true })
  connection.on('close', () => {
    throw new Error('the server closed a connection')
  })
  server.emit('connection', connection)
  return connection
})

/** Asks once, and returns how long the answer is. */
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
      // The server still has to end its part.
      setImmediate(() => {
        connection!.remainingBytes = 0
        resolve(length)
      })
    }
    connection!.sendRequest(Buffer.from(requestText, 'latin1'), Infinity)
  })
}

/** The requests of a run as one text, in pieces of one length, so that none is made while time is taken. */
function prepareRequests(requestAt: (n: number) => string, start: number, total: number): (n: number) => Buffer {
  const first = Buffer.from(requestAt(start), 'latin1')
  if (requestAt(start + 1) === requestAt(start)) return () => first
  const all = Buffer.alloc(first.length * total)
  for (let n = 0; n < total; n++) all.write(requestAt(start + n), n * first.length, 'latin1')
  return (n) => all.subarray(n * first.length, (n + 1) * first.length)
}

/** Asks on all connections, each again once it was answered, in rounds of the event loop. Returns how often. */
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

// Where V8 compiles `nextTick` later, it is five times as slow for all of some processes.
await new Promise<void>((resolve) => {
  let left = 100_000
  const again = (): void => (--left > 0 ? process.nextTick(again) : resolve())
  again()
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
