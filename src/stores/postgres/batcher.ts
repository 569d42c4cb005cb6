import { StoreUnavailableError } from '../../plants/store.ts'
import { performance } from '../../timers.ts'
import { batchSize, type WaitingWrite } from '../batch-size.ts'
import { isOfOnePlant } from './failure.ts'

export interface BatcherOptions {
  readonly maxInFlight: number
  readonly maxBatch: number
  readonly timeoutMs: number
  readonly onBatch: (size: number) => void
}

/** Sends writes in order; those that come while a group is in flight go together. Only one with a wrong value fails. */
export function createBatcher<Write, Result>(
  send: (group: readonly Write[]) => Promise<readonly Result[]>,
  { maxInFlight, maxBatch, timeoutMs, onBatch }: BatcherOptions,
): (write: Write, length?: number) => Promise<Result> {
  const waiting: WaitingWrite<Write, Result>[] = []
  let inFlight = 0

  function wake(settled = 0): void {
    for (; waiting.length > 0 && inFlight < maxInFlight; settled = 0) void start(settled)
  }

  /** @param settled the size of the group that has just ended, if its end is why this one starts; else 0 */
  async function start(settled: number): Promise<void> {
    // Callers that were just answered soon write again. With half of them and of what waits, the groups stay equal.
    const { length } = waiting
    const share = settled === 0 ? length : Math.ceil((settled + length) / 2)
    const group = waiting.splice(0, batchSize(waiting, Math.min(share, maxBatch)))
    inFlight++
    onBatch(group.length)
    await settle(group)
    inFlight--
    wake(group.length)
  }

  async function settle(entries: readonly WaitingWrite<Write, Result>[]): Promise<void> {
    // Otherwise a silent server would work for long for clients that have gone.
    const now = performance.now()
    const group = entries.filter(({ expiresAt, reject }) => {
      if (now > expiresAt) reject(new StoreUnavailableError('No statement was free in time.'))
      return now <= expiresAt
    })
    if (group.length === 0) return
    try {
      const results = await send(group.map(({ write }) => write))
      for (const [index, { resolve }] of group.entries()) resolve(results[index]!)
    } catch (error) {
      if (group.length > 1 && isOfOnePlant(error)) {
        const half = Math.ceil(group.length / 2)
        await settle(group.slice(0, half))
        await settle(group.slice(half))
      } else {
        for (const { reject } of group) reject(error)
      }
    }
  }

  return (write, length = 0) => {
    return new Promise((resolve, reject) => {
      waiting.push({ write, length, expiresAt: performance.now() + timeoutMs, resolve, reject })
      wake()
    })
  }
}
