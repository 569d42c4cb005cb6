import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** The bytes that are still held after a garbage collection. */
export function heapUsed(): number {
  setFlagsFromString('--expose-gc')
  ;(runInNewContext('gc') as () => void)()
  return process.memoryUsage().heapUsed
}

/** The bytes that are still held in the heap and in buffers. */
export async function memoryUsed(): Promise<number> {
  // What a collection frees of buffers, it counts as used until a later one.
  for (let i = 0; i < 3; i++) {
    heapUsed()
    await setImmediate()
  }
  return heapUsed() + process.memoryUsage().arrayBuffers
}
