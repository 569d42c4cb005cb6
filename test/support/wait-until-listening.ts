import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'

/** Waits until a port accepts connections. Calls `check` between attempts, and rejects if it throws. */
export async function waitUntilListening(
  port: number,
  host = '127.0.0.1',
  check = (): void => undefined,
): Promise<void> {
  for (;;) {
    const socket = connect(port, host)
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
    socket.destroy()
    if (isOpen) return
    check()
    await setTimeout(20)
  }
}
