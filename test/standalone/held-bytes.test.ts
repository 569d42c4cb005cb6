import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer, connect, type AddressInfo, type Socket } from 'node:net'
import { endianness, networkInterfaces } from 'node:os'
import { suite, test } from 'node:test'
import { readHeld, TABLES, type Ends } from '../../src/standalone/held-bytes.ts'
import { temporaryFile } from '../support/temporary-file.ts'

const HEADING = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n'

/** A row of a kernel's table. */
function rowOf(addresses: string, held: string, index = 0): string {
  return `   ${index}: ${addresses} 01 ${held}:00000000 01:00000014 00000000     0        0 48315 1 0000000000000000 20 4 30 10 -1\n`
}

/** A connection between ports 3000 and 50000. */
function between(localAddress: string, remoteAddress: string): Ends {
  return { localAddress, localPort: 3000, remoteAddress, remotePort: 50_000 }
}

// The kernel writes addresses in the byte order of the machine.
const skip = endianness() === 'BE' ? 'the rows are those of a little-endian machine' : false

suite('what the kernel holds is found for a connection over', { skip }, () => {
  const rows: readonly [what: string, local: string, remote: string, addresses: string][] = [
    ['IPv4', '127.0.0.1', '192.0.2.255', '0100007F:0BB8 FF0200C0:C350'],
    ['IPv6', '::1', '::1', '00000000000000000000000001000000:0BB8 00000000000000000000000001000000:C350'],
    [
      'IPv6 with zeros in the middle',
      '2001:db8::ff00:42:8329',
      '2001:db8::1',
      'B80D01200000000000FF000029834200:0BB8 B80D0120000000000000000001000000:C350',
    ],
    [
      'IPv6 with zeros at the end, and without any',
      'fe80::',
      '1:2:3:4:5:6:7:8',
      '000080FE000000000000000000000000:0BB8 02000100040003000600050008000700:C350',
    ],
    [
      'IPv4 to a listener of IPv6',
      '::ffff:127.0.0.1',
      '::ffff:10.0.0.1',
      '0000000000000000FFFF00000100007F:0BB8 0000000000000000FFFF00000100000A:C350',
    ],
    [
      'IPv6 in a zone',
      'fe80::1%eth0',
      'fe80::2%eth0',
      '000080FE000000000000000001000000:0BB8 000080FE000000000000000002000000:C350',
    ],
  ]
  for (const [what, local, remote, addresses] of rows) {
    test(what, async (t) => {
      const socket = between(local, remote)
      const table = temporaryFile(t, HEADING + rowOf(addresses, '000A0BCD'))
      assert.deepEqual(await readHeld([table], [socket]), new Map([[socket, 0xa0bcd]]))
    })
  }

  test('IPv6 if the system has no table for IPv4', async (t) => {
    const socket = between('::1', '::1')
    const table = temporaryFile(t, HEADING + rowOf(rows[1]![3], '00000001'))
    assert.deepEqual(await readHeld(['/nowhere', table], [socket]), new Map([[socket, 1]]))
  })

  test('IPv4 among so many that the table is read in pieces', async (t) => {
    const sockets = Array.from({ length: 3000 }, (_, port) => ({
      ...between('127.0.0.1', '127.0.0.1'),
      remotePort: port,
    }))
    const digits = (port: number): string => port.toString(16).toUpperCase().padStart(4, '0')
    const table = sockets.map(({ remotePort }) =>
      rowOf(`0100007F:0BB8 0100007F:${digits(remotePort)}`, '00000010', remotePort),
    )
    const holdings = await readHeld([temporaryFile(t, HEADING + table.join(''))], sockets)
    assert.deepEqual(holdings, new Map(sockets.map((socket) => [socket, 16])))
  })
})

suite('nothing is said of a connection', { skip }, () => {
  const row = rowOf('0100007F:0BB8 0100007F:C350', '00000001')
  const rows: readonly [what: string, socket: Ends, row: string][] = [
    ['of which the system gives no figure', between('127.0.0.1', '127.0.0.1'), row.replace('00000001:', '00000000:')],
    ['that is not in the table', between('127.0.0.1', '127.0.0.2'), row],
    ['that has closed', { ...between('127.0.0.1', ''), remoteAddress: undefined }, row],
    ['of a local socket', { remoteAddress: undefined, remotePort: undefined }, row],
  ]
  for (const [what, socket, row] of rows) {
    test(what, async (t) => {
      assert.deepEqual(await readHeld([temporaryFile(t, HEADING + row)], [socket]), new Map())
    })
  }
})

suite(
  'Linux tells how much it holds for a client that does not read',
  { skip: !existsSync('/proc/self/net/tcp') },
  () => {
    const hosts = Object.values(networkInterfaces()).flatMap((addresses) => addresses!.map(({ address }) => address))
    for (const host of ['127.0.0.1', '::1']) {
      test(`over ${host}`, { skip: !hosts.includes(host) }, async (t) => {
        const server = createServer((socket) => socket.on('error', () => undefined).write(Buffer.alloc(2 ** 24)))
        t.after(() => server.close())
        await once(server.listen(0, host), 'listening')
        const client = connect((server.address() as AddressInfo).port, host)
        t.after(() => client.destroy())
        const [accepted] = (await once(server, 'connection')) as [Socket]
        assert.ok((await readHeld(TABLES, [accepted])).get(accepted)! > 0)
      })
    }
  },
)
