import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { cutStalled, type Pace } from '../../src/standalone/stall.ts'
import { listen, portOf } from './service.ts'

/** The only connection of a server. The test says when the server looks at it, and what the kernel holds. */
export interface WatchedConnection {
  readonly server: Server
  readonly socket: Socket
  /** How often the kernel was asked. */
  readonly asked: () => number
  /** Lets time pass. */
  readonly pass: (ms: number) => void
  /**
   * Has the server look. The kernel says that it holds so many bytes, or nothing.
   * @returns whether the connection is cut then
   */
  readonly look: (
    held: number | undefined,
    options?: { afterMs?: number; meanwhile?: () => unknown },
  ) => Promise<boolean>
}

/** Opens a connection to a server that cuts the stalled ones. Its client takes all that it gets. */
export async function watch(t: TestContext, pace: Pace): Promise<WatchedConnection> {
  const lookMs = Math.ceil(pace.stallTimeoutMs / 4)
  t.mock.timers.enable({ apis: ['setInterval'] })
  const clock = { ms: 0 }
  t.mock.method(performance, 'now', () => clock.ms)
  const server = createServer()
  let asked = 0
  let answer: () => Promise<number | undefined> = () => Promise.resolve(undefined)
  cutStalled(server, pace, async (sockets) => {
    asked++
    const held = await answer()
    return held === undefined ? new Map() : new Map(Array.from(sockets, (socket) => [socket, held]))
  })
  await listen(server)
  const client = connect(portOf(server), '127.0.0.1').on('error', () => undefined)
  // The server ends its timer when it has closed: before the next test has timers of its own.
  t.after(async () => {
    client.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
  const [socket] = (await once(server, 'connection')) as [Socket]
  client.resume()
  const pass = (ms: number): void => {
    clock.ms += ms
    t.mock.timers.tick(ms)
  }
  return {
    server,
    socket,
    asked: () => asked,
    pass,
    look: async (held, { afterMs = lookMs, meanwhile } = {}) => {
      const before = asked
      const answered = new Promise<void>((resolve) => {
        answer = async () => {
          // The clock cannot be moved while it moves.
          await setImmediate()
          await meanwhile?.()
          resolve()
          return held
        }
      })
      clock.ms += afterMs - lookMs
      pass(lookMs)
      assert.equal(asked, before + 1, 'the server did not look')
      await answered
      await setImmediate()
      return socket.destroyed
    },
  }
}

/** Has bytes wait in this process. */
export function hold(socket: Socket, bytes = 100): void {
  socket.cork()
  socket.write(Buffer.alloc(bytes))
}

/** Hands all bytes over to the kernel. */
export async function handOver(socket: Socket): Promise<void> {
  const written = new Promise((resolve) => socket.write('', resolve))
  socket.uncork()
  await written
}
