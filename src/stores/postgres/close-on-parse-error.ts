import type { Duplex } from 'node:stream'
import { UnreadableResponseError } from './errors.ts'

type Listener = (chunk: Buffer) => unknown

const wrappedListeners = new WeakSet<Listener>()

/**
 * Closes a connection when the driver can't parse a response, such as a value that exceeds the maximum length of a
 * string, or garbage from a broken proxy. `pg` parses in a `data` listener, so the exception would otherwise crash the
 * process.
 */
export function closeOnParseError(stream: object | undefined): void {
  const emitter = stream as Duplex | undefined
  // Other drivers may have no stream, or a stream of another type.
  if (typeof emitter?.listeners !== 'function') return
  for (const listener of emitter.listeners('data') as Listener[]) {
    if (wrappedListeners.has(listener)) continue
    const wrappedListener: Listener = (chunk) => {
      try {
        listener.call(emitter, chunk)
      } catch (error) {
        // Stop parsing: the next bytes are from the middle of a message.
        emitter.off('data', wrappedListener).destroy(new UnreadableResponseError(error))
      }
    }
    wrappedListeners.add(wrappedListener)
    emitter.on('data', wrappedListener).off('data', listener)
  }
}
