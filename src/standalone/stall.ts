import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { reset } from '../http/reset.ts'
import { readHeld, TABLES } from './held-bytes.ts'

/** A connection is cut after so many looks in a row that find that its client has taken nothing. */
const LOOKS = 4
/** The same if only the buffer of this process can be seen: a slow client needs time to empty that of the kernel. */
const BLIND_LOOKS = 4 * LOOKS

/** What clients may do. */
export interface Pace {
  /** How long a client may take nothing. */
  readonly stallTimeoutMs: number
  /** What a client must take on average; 0 for nothing. It may fall behind by what is due in a stall time-out. */
  readonly minBytesPerSecond: number
}

/** What the last look at a connection found whose response waits for the client. */
interface Sight {
  /** By `performance.now()`. */
  readonly at: number
  /** What `countHandedOver` returned. */
  readonly handedOver: number
  /** Bytes that the kernel holds until the client takes them; undefined if it does not say. */
  readonly held: number | undefined
  /** How many looks in a row found the same. */
  readonly looks: number
  /** How many bytes fewer than are due the client may take from now on. */
  readonly credit: number
}

/**
 * Resets the connections of a server whose clients take nothing of what is sent to them, after `stallTimeoutMs` and at
 * most a quarter of that more; and those whose clients take too little.
 *
 * What counts is what the client takes. What the kernel takes from the process says little: it takes megabytes for a
 * client that reads nothing, and then takes nothing for a minute for one that reads slowly. Only Linux tells how much
 * the kernel holds, in a table of all connections. The table is read only if something waits for a client, and once for
 * all of them. What a client sends does not count, or a byte now and then would keep its connection open.
 */
export function cutStalled(
  server: Server,
  { stallTimeoutMs, minBytesPerSecond }: Pace,
  askKernel = (sockets: Iterable<Socket>): Promise<Map<Socket, number>> => readHeld(TABLES, sockets),
): void {
  const sockets = new Set<Socket>()
  /** What the last look found, of those for whose client something waits. */
  const sights = new WeakMap<Socket, Sight>()
  const lookMs = Math.ceil(stallTimeoutMs / LOOKS)
  const maxCredit = (minBytesPerSecond * stallTimeoutMs) / 1000
  let isLooking = false

  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const timer = setInterval(() => void look(), lookMs).unref()
  server.once('close', () => clearInterval(timer))

  async function look(): Promise<void> {
    if (isLooking) return
    isLooking = true
    const waiting = new Map<Socket, number>()
    for (const socket of sockets) {
      if (socket.writableLength > 0) waiting.set(socket, countHandedOver(socket))
      else sights.delete(socket)
    }
    if (waiting.size > 0) {
      const holdings = await askKernel(waiting.keys())
      for (const [socket, handedOver] of waiting) judge(socket, handedOver, holdings.get(socket))
    }
    isLooking = false
  }

  function judge(socket: Socket, handedOver: number, held: number | undefined): void {
    // If bytes have moved while the table was read, its figure says nothing. The next look sees that they have.
    if (handedOver !== countHandedOver(socket)) return
    const before = sights.get(socket)
    const isSame = before?.handedOver === handedOver && before.held === held
    const looks = isSame ? before.looks + 1 : 0
    const seen = { at: performance.now(), handedOver, held, looks }
    const credit = countCredit(before, seen)
    sights.set(socket, { ...seen, credit })

    const isStalled = looks >= (held === undefined ? BLIND_LOOKS : LOOKS)
    // The kernel may also hold, or the client have taken, a part of what waits: only whole writes are counted.
    const isTooSlow = minBytesPerSecond > 0 && credit + socket.writableLength < 0
    if (isStalled || isTooSlow) reset(socket)
  }

  function countCredit(before: Sight | undefined, { at, handedOver, held }: Omit<Sight, 'credit'>): number {
    if (before?.held === undefined || held === undefined) return maxCredit
    const taken = handedOver - held - (before.handedOver - before.held)
    // If the looks are late, this process was held up, and the client with it.
    const due = (minBytesPerSecond * Math.min(at - before.at, 2 * lookMs)) / 1000
    return Math.min(maxCredit, before.credit + taken - due)
  }
}

/** Counts the bytes of the writes that the kernel has taken whole. */
function countHandedOver(socket: Socket): number {
  return socket.bytesWritten - socket.writableLength
}
