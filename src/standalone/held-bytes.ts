import { createReadStream } from 'node:fs'
import type { Socket } from 'node:net'

/** The files in which Linux lists the connections over IPv4 and IPv6. */
export const TABLES: readonly string[] = ['/proc/self/net/tcp', '/proc/self/net/tcp6']
/** A row of such a table: both addresses, the state, and how many bytes the client has not taken. */
const ROW = /^ *\d+: (\S+ \S+) \S+ ([0-9A-F]{8}):/gm

/** Both ends of a connection. */
export type Ends = Pick<Socket, 'localAddress' | 'localPort' | 'remoteAddress' | 'remotePort'>

/** Asks the kernel how much it holds for the clients of connections. Leaves out those that it says nothing about. */
export async function readHeld<T extends Ends>(
  tables: readonly string[],
  connections: Iterable<T>,
): Promise<Map<T, number>> {
  const wanted = new Map(Array.from(connections, (connection) => [addressesOf(connection), connection]))
  const holdings = new Map<T, number>()
  for await (const rows of readTables(tables)) {
    for (const [, addresses, held] of rows.matchAll(ROW)) {
      const connection = wanted.get(addresses)
      // Some systems have the tables but no figures.
      if (connection !== undefined && held !== '00000000') holdings.set(connection, parseInt(held!, 16))
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
function addressesOf({ localAddress, localPort, remoteAddress, remotePort }: Ends): string | undefined {
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
