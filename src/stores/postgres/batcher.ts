import { StoreUnavailableError } from '../../plants/store.ts'
import { performance } from '../../timers.ts'
import { nextBatchSize, type QueuedWrite } from '../batch-size.ts'
import { isSinglePlantError } from './errors.ts'

export interface BatcherOptions {
  readonly maxInFlight: number
  readonly maxBatch: number
  readonly timeoutMs: number
  readonly onBatch: (size: number) => void
}

/** Sends writes in order; those that come while a group is in flight go together. Only one with a wrong value fails. */
export function createBatcher<Write, Result>(
  send: (batch: readonly Write[]) => Promise<readonly Result[]>,
  { maxInFlight, maxBatch, timeoutMs, onBatch }: BatcherOptions,
): (write: Write, length?: number) => Promise<Result> {
  const queue: QueuedWrite<Write, Result>[] = []
  let inFlight = 0

  function startBatches(finishedSize = 0): void {
    for (; queue.length > 0 && inFlight < maxInFlight; finishedSize = 0) void startBatch(finishedSize)
  }

  /** @param finishedSize the size of the group that has just ended, if its end is why this one starts; else 0 */
  async function startBatch(finishedSize: number): Promise<void> {
    // Callers that were just answered soon write again. With half of them and of what waits, the groups stay equal.
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
    // Otherwise a silent server would work for long for clients that have gone.
    const now = performance.now()
    const batch = entries.filter(({ expiresAt, reject }) => {
      if (now > expiresAt) reject(new StoreUnavailableError('No statement was free in time.'))
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
