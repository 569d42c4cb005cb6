import { StoreUnavailableError } from '../../legacy/plants/store.ts'
import { performance } from '../../legacy/timers.ts'
import { nextBatchSize, type QueuedWrite } from '../../legacy/stores/batch-size.ts'
import { isSinglePlantError } from './errors.ts'

interface BatcherOptions {
  /** The maximum number of batches in flight. */
  readonly maxInFlight: number
  readonly maxBatch: number
  /** How long a write may wait in the queue, in milliseconds. */
  readonly timeoutMs: number
  readonly onBatch: (size: number) => void
}

/**
 * Creates a function that queues writes and sends them in order. Writes that arrive while the maximum number of batches
 * is in flight share the next batch. If the database rejects a value, only the write with that value fails.
 */
export function createBatcher<Write, Result>(
  send: (batch: readonly Write[]) => Promise<readonly Result[]>,
  { maxInFlight, maxBatch, timeoutMs, onBatch }: BatcherOptions,
): (write: Write, length?: number) => Promise<Result> {
  const queue: QueuedWrite<Write, Result>[] = []
  let inFlight = 0

  function startBatches(finishedSize = 0): void {
    for (; queue.length > 0 && inFlight < maxInFlight; finishedSize = 0) void startBatch(finishedSize)
  }

  /** @param finishedSize the size of the batch that has just finished; 0 if a new write starts this batch */
  async function startBatch(finishedSize: number): Promise<void> {
    // The callers of the finished batch will probably write again soon. Taking half of the expected total keeps
    // successive batches about equal in size.
    const { length } = queue
    const targetSize = finishedSize === 0 ? length : Math.ceil((finishedSize + length) / 2)
    const batch = queue.splice(0, nextBatchSize(queue, Math.min(targetSize, maxBatch)))
    inFlight++
    onBatch(batch.length)
    await sendBatch(batch)
    inFlight--
    startBatches(batch.length)
  }

  async function sendBatch(entries: readonly QueuedWrite<Write, Result>[]): Promise<void> {
    // Drop writes that have timed out. Otherwise a server that was unresponsive would work through all of them when it
    // recovers.
    const now = performance.now()
    const batch = entries.filter(({ expiresAt, reject }) => {
      if (now > expiresAt) reject(new StoreUnavailableError('The write timed out in the queue.'))
      return now <= expiresAt
    })
    if (batch.length === 0) return
    try {
      const results = await send(batch.map(({ write }) => write))
      for (const [index, { resolve }] of batch.entries()) resolve(results[index]!)
    } catch (error) {
      if (batch.length > 1 && isSinglePlantError(error)) {
        const half = Math.ceil(batch.length / 2)
        await sendBatch(batch.slice(0, half))
        await sendBatch(batch.slice(half))
      } else {
        for (const { reject } of batch) reject(error)
      }
    }
  }

  return (write, length = 0) => {
    return new Promise((resolve, reject) => {
      queue.push({ write, length, expiresAt: performance.now() + timeoutMs, resolve, reject })
      startBatches()
    })
  }
}
