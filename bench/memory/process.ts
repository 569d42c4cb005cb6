// The process of one contestant that is asked without the kernel: what a connection in memory gets, the server of the
// contestant reads, and what the server writes is counted.
import { once } from 'node:events'
import type { Server } from 'node:http'
import { PerformanceObserver } from 'node:perf_hooks'
import process from 'node:process'
import { Duplex } from 'node:stream'
import { CASES } from '../cases.ts'
import { type Answer, ResponseReader } from '../response-reader.ts'
import type { Order, Slice, SliceOrder } from './measure.ts'

/** A client and its connection. */
class Connection extends Duplex {
  /** Bytes of the answer that are still to come. It has as many as the first one had, or more: ids of requests grow. */
  due = 0
  /** Gets the answers, until they are all of the same length. */
  reader: ((bytes: Buffer) => void) | undefined

  ask(request: Buffer, due: number): void {
    this.due = due
    this.push(request)
  }

  override _read(): void {
    // A request comes once the one before it is answered.
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.due -= chunk.length
    this.reader?.(chunk)
    done()
  }

  override _writev(chunks: readonly { readonly chunk: Buffer }[], done: () => void): void {
    for (const { chunk } of chunks) this._write(chunk, 'latin1', () => undefined)
    done()
  }
}

const {
  case: name,
  file,
  isConstant,
  given,
  connections: count,
  requests,
  warmUp,
} = JSON.parse(process.argv[2]!) as Order
const theCase = CASES.find((each) => each.name === name)!
const { seeds, seed, request } = theCase
// Before there is a server: the guard of the program would take that time for a round of the server.
const [early, measured] = [prepare(request, 1, warmUp), prepare(request, 1 + warmUp, requests)]
const { default: listen } = (await import(file)) as { default: (given: object) => Server | Promise<Server> }
const server = await listen(given)
// Node tracks no request of a connection that was there before, which would save a part of its time.
if (!server.listening) await once(server, 'listening')

const connections = Array.from({ length: count }, () => {
  const connection = new Connection({ decodeStrings: true })
  connection.on('close', () => {
    throw new Error('the server closed a connection')
  })
  server.emit('connection', connection)
  return connection
})

/** Asks once, and returns how long the answer is. */
async function askOnce(request: string, answer: Answer = theCase.answer): Promise<number> {
  const [connection] = connections
  const reader = new ResponseReader(answer)
  return new Promise((resolve, reject) => {
    let length = 0
    connection!.reader = (bytes) => {
      length += bytes.length
      try {
        if (reader.read(bytes) === 0) return
      } catch (error) {
        reject(error)
      }
      connection!.reader = undefined
      // The server still has to end its part.
      setImmediate(() => {
        connection!.due = 0
        resolve(length)
      })
    }
    connection!.ask(Buffer.from(request, 'latin1'), Infinity)
  })
}

/** The requests of a run as one text, in pieces of one length, so that none is made while time is taken. */
function prepare(request: (n: number) => string, from: number, total: number): (n: number) => Buffer {
  const first = Buffer.from(request(from), 'latin1')
  if (request(from + 1) === request(from)) return () => first
  const all = Buffer.alloc(first.length * total)
  for (let n = 0; n < total; n++) all.write(request(from + n), n * first.length, 'latin1')
  return (n) => all.subarray(n * first.length, (n + 1) * first.length)
}

/** Asks on all connections, each again once it was answered, in rounds of the event loop. Returns how often. */
function ask(request: (n: number) => Buffer, total: number, length: number, end = Infinity): Promise<number> {
  let sent = 0
  return new Promise((resolve) => {
    function round(): void {
      const isOver = sent >= total || performance.now() >= end
      let isWaiting = false
      for (const connection of connections) {
        if (connection.due > 0) isWaiting = true
        else if (!isOver && sent < total) connection.ask(request(sent++), length)
      }
      if (isOver && !isWaiting) resolve(sent)
      else setImmediate(round)
    }
    round()
  })
}

// Where V8 compiles `nextTick` later, it is five times as slow for all of some processes.
await new Promise<void>((resolve) => {
  let left = 100_000
  const again = (): void => (--left > 0 ? process.nextTick(again) : resolve())
  again()
})

if (!isConstant) {
  const total = typeof seeds === 'number' ? seeds : 1 + warmUp + requests
  for (let n = 0; n < total; n++) await askOnce(seed(n), { status: 200 })
}
const length = await askOnce(request(0))
await ask(early, warmUp, length)

let collecting = 0
const observer = new PerformanceObserver((list) => note(list.getEntries()))
observer.observe({ type: 'gc' })
function note(entries: readonly { readonly duration: number }[]): void {
  for (const { duration } of entries) collecting += 1000 * duration
}

let asked = 0
async function measure({ requests, seconds }: SliceOrder): Promise<void> {
  collecting = 0
  const from = asked
  const before = process.cpuUsage()
  const answered = await ask((n) => measured(from + n), requests, length, performance.now() + 1000 * seconds)
  const { user, system } = process.cpuUsage(before)
  note(observer.takeRecords())
  asked += answered
  process.send!({ answered, cpu: user + system, system, gc: collecting } satisfies Slice)
}
process.on('message', (order: SliceOrder) => void measure(order))
process.on('disconnect', () => process.exit())
process.send!(length - theCase.answer.body.length)
