import type { Duplex } from 'node:stream'
import { UnreadableResponseError } from './errors.ts'

type Listener = (chunk: Buffer) => unknown

const wrappedListeners = new WeakSet<Listener>()

/**
 * Closes a connection whose server sends what the driver can't parse: a text that is longer than a string can be, or the
 * bytes of a broken proxy. `pg` parses in a `data` listener, where its exception would end the process.
 */
export function closeOnParseError(stream: object | undefined): void {
  const emitter = stream as Duplex | undefined
  // Other drivers have no stream, or another kind.
  if (typeof emitter?.listeners !== 'function') return
  for (const listener of emitter.listeners('data') as Listener[]) {
    if (wrappedListeners.has(listener)) continue
    const wrappedListener: Listener = (chunk) => {
      try {
        listener.call(emitter, chunk)
      } catch (error) {
        // Whatever follows would be parsed from the middle of a message.
        emitter.off('data', wrappedListener).destroy(new UnreadableResponseError(error))
      }
    }
    wrappedListeners.add(wrappedListener)
    emitter.on('data', wrappedListener).off('data', listener)
  }
}
