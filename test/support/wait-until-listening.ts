import { connect } from 'node:net'
import { waitUntil } from './wait-until.ts'

/** Waits until a port accepts connections. Calls `check` before each attempt, and rejects if it throws. */
export function waitUntilListening(port: number, host = '127.0.0.1', check = (): void => undefined): Promise<void> {
  return waitUntil(async () => {
    check()
    const socket = connect(port, host)
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
    socket.destroy()
    return isOpen
  }, 20)
}
