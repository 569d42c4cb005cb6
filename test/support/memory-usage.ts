import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
// Once: a context takes 160 KiB, and V8 may keep one for a while.
const collectGarbage = runInNewContext('gc') as () => void

/** The bytes that are still held after a garbage collection. */
export function measureHeapUsed(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

/** The bytes that are still held in the heap and in buffers. */
export async function measureMemoryUsed(): Promise<number> {
  // What a collection frees of buffers, it counts as used until a later one.
  for (let i = 0; i < 3; i++) {
    measureHeapUsed()
    await setImmediate()
  }
  return measureHeapUsed() + process.memoryUsage().arrayBuffers
}
