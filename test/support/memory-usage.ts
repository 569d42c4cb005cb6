import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

setFlagsFromString('--expose-gc')
// Created once, because a context takes 160 KiB, which V8 may keep allocated for a while.
const collectGarbage = runInNewContext('gc') as () => void

/** Returns the heap size in bytes after a garbage collection. */
export function measureHeapUsed(): number {
  collectGarbage()
  return process.memoryUsage().heapUsed
}

/** Returns the size of the heap and of all buffers in bytes after garbage collection. */
export async function measureMemoryUsed(): Promise<number> {
  // V8 counts buffers that a collection frees as used until a later collection.
  for (let i = 0; i < 3; i++) {
    measureHeapUsed()
    await setImmediate()
  }
  return measureHeapUsed() + process.memoryUsage().arrayBuffers
}
