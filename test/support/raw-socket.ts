import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { portOf } from './service.ts'
import { readAnswers, type WireAnswer } from './wire.ts'

/** Opens a connection. What befalls it afterwards is told by its `close` alone. */
export function openSocket(server: Server): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port: portOf(server), host: '127.0.0.1', noDelay: true })
    socket.once('error', reject)
    socket.once('connect', () => resolve(socket.off('error', reject).on('error', () => undefined)))
  })
}

/**
 * Reads from a connection until there are so many final answers, by default until the server closes it.
 * @throws Error where what comes is not HTTP, or ends within an answer
 */
export function receive(socket: Socket, count = Infinity): Promise<readonly WireAnswer[]> {
  const chunks: Buffer[] = []
  return new Promise((resolve, reject) => {
    function onData(chunk: Buffer): void {
      chunks.push(chunk)
      // Answers without end would be read again and again.
      if (count !== Infinity) settle(false)
    }
    function onClose(): void {
      settle(true)
    }
    function settle(isClosed: boolean): void {
      try {
        const { answers, rest } = readAnswers(Buffer.concat(chunks))
        if (isClosed) assert.equal(rest.toString('latin1'), '', 'the connection closed within an answer')
        else if (answers.filter(({ status }) => status >= 200).length < count) return
        socket.off('data', onData).off('close', onClose)
        resolve(answers)
      } catch (cause) {
        reject(new Error('what the server sent is not HTTP', { cause }))
      }
    }
    socket.on('data', onData).on('close', onClose)
    settle(false)
  })
}

/** Lets the event loop turn until it is so. */
export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await setImmediate()
}
