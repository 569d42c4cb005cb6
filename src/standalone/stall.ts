import { createReadStream } from 'node:fs'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { reset } from '../http/reset.ts'

/** A connection is cut after so many looks in a row that find that its client has taken nothing. */
const LOOKS = 4
/** The same if only the buffer of this process can be seen: a slow client needs time to empty that of the kernel. */
const BLIND_LOOKS = 4 * LOOKS

/** What the last look at a connection found. */
interface Sight {
  /** What `countHandedOver` returned. */
  readonly handedOver: number
  /** Bytes that the kernel holds until the client takes them; undefined if it does not say, or was not asked. */
  readonly held: number | undefined
  /** How many looks in a row found the same. */
  readonly looks: number
}

const UNSEEN: Sight = { handedOver: 0, held: undefined, looks: 0 }

/** The files in which Linux lists the connections over IPv4 and IPv6. */
const TABLES = ['/proc/self/net/tcp', '/proc/self/net/tcp6']
/** A row of such a table: both addresses, the state, and how many bytes the client has not taken. */
const ROW = /^ *\d+: (\S+ \S+) \S+ ([0-9A-F]{8}):/gm

/**
 * Resets the connections of a server whose clients take nothing of what is sent to them, after `stallTimeoutMs`
 * and at most half as long again.
 *
 * What counts is what the client takes. What the kernel takes from the process says little: it takes megabytes for a
 * client that reads nothing, and then takes nothing for a minute for one that reads slowly. Only Linux tells how much
 * the kernel holds, in a table of all connections. The table is read only if some client seems to have stalled, and
 * once for all of them. What a client sends does not count, or a byte now and then would keep its connection open.
 */
export function cutStalled(server: Server, stallTimeoutMs: number, tables: readonly string[] = TABLES): void {
  const sights = new Map<Socket, Sight>()
  let isLooking = false

  server.on('connection', (socket: Socket) => {
    sights.set(socket, UNSEEN)
    socket.once('close', () => sights.delete(socket))
  })
  const timer = setInterval(() => void look(), Math.ceil(stallTimeoutMs / LOOKS)).unref()
  server.once('close', () => clearInterval(timer))

  async function look(): Promise<void> {
    if (isLooking) return
    isLooking = true
    const suspects = findSuspects()
    if (suspects.length > 0) judge(suspects, await readHeld(tables, suspects))
    isLooking = false
  }

  /** Finds the connections of which no whole write was handed over since the last look. */
  function findSuspects(): Socket[] {
    const suspects: Socket[] = []
    for (const [socket, sight] of sights) {
      const handedOver = countHandedOver(socket)
      if (socket.writableLength > 0 && handedOver === sight.handedOver) suspects.push(socket)
      else sights.set(socket, { handedOver, held: undefined, looks: 0 })
    }
    return suspects
  }

  function judge(suspects: readonly Socket[], holdings: ReadonlyMap<Socket, number>): void {
    for (const socket of suspects) {
      const sight = sights.get(socket)
      // If bytes have moved while the table was read, the next look sees that.
      if (sight?.handedOver !== countHandedOver(socket)) continue
      const held = holdings.get(socket)
      const looks = held === sight.held ? sight.looks + 1 : 0
      sights.set(socket, { ...sight, held, looks })
      if (looks >= (held === undefined ? BLIND_LOOKS : LOOKS)) reset(socket)
    }
  }
}

/** Counts the bytes of the writes that the kernel has taken whole. */
function countHandedOver(socket: Socket): number {
  return socket.bytesWritten - socket.writableLength
}

/** Asks the kernel how much it holds for the clients of connections. Leaves out those that it says nothing about. */
async function readHeld(tables: readonly string[], sockets: readonly Socket[]): Promise<Map<Socket, number>> {
  const wanted = new Map(sockets.map((socket) => [addressesOf(socket), socket]))
  const holdings = new Map<Socket, number>()
  for await (const rows of readTables(tables)) {
    for (const [, addresses, held] of rows.matchAll(ROW)) {
      const socket = wanted.get(addresses)
      // Some systems have the tables but no figures.
      if (socket !== undefined && held !== '00000000') holdings.set(socket, parseInt(held!, 16))
    }
  }
  return holdings
}

/** Reads the kernel's tables a few rows at a time: each connection of the machine has one. */
async function* readTables(tables: readonly string[]): AsyncGenerator<string> {
  for (const path of tables) {
    let rest = ''
    try {
      for await (const piece of createReadStream(path, 'latin1') as AsyncIterable<string>) {
        const text = rest + piece
        const end = text.lastIndexOf('\n') + 1
        rest = text.slice(end)
        yield text.slice(0, end)
      }
    } catch {
      // Other systems have no such table, and some hide it.
    }
  }
}

/** Both ends of a connection as the kernel's tables write them; undefined if it has none. */
function addressesOf({ localAddress, localPort, remoteAddress, remotePort }: Socket): string | undefined {
  if (localAddress === undefined || remoteAddress === undefined) return undefined
  return `${formatEnd(localAddress, localPort!)} ${formatEnd(remoteAddress, remotePort!)}`
}

/** The words of the address in the byte order of this machine, then the port, in hexadecimal digits. */
function formatEnd(address: string, port: number): string {
  const bytes = address.includes(':') ? bytesOfIPv6(address) : address.split('.').map(Number)
  const words = [...new Uint32Array(Uint8Array.from(bytes).buffer)]
  return `${words.map((word) => toHex(word, 8)).join('')}:${toHex(port, 4)}`
}

function bytesOfIPv6(address: string): number[] {
  // In a URL the address is written without dots, and may have no zone.
  const { hostname } = new URL(`http://[${address.replace(/%.*/, '')}]`)
  const [head, tail = []] = hostname
    .slice(1, -1)
    .split('::')
    .map((side) => side.split(':').filter(Boolean))
  const zeros = new Array<string>(8 - head!.length - tail.length).fill('0')
  return [...head!, ...zeros, ...tail].flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 255])
}

function toHex(number: number, digits: number): string {
  return number.toString(16).toUpperCase().padStart(digits, '0')
}
