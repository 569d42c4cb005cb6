import { setImmediate } from 'node:timers'
import { BUSY, CONSTRAINT, FULL, hasResultCode, SET_APPLICATION_ID, TOOBIG } from './database-file.ts'
import type { DatabaseFile } from './database-file.ts'

/** A commit blocks the event loop, so it contains at most this many creates and deletes. */
const MAX_BATCH = 256

interface QueuedWrite {
  readonly write: () => boolean
  readonly resolve: (result: boolean) => void
  readonly reject: (error: Error) => void
}

export interface WriteQueue {
  /** Resolves with the result of the write once it is committed. */
  add(write: () => boolean): Promise<boolean>
  /** Checks that writes can be committed. @param emptyWrite a write that changes nothing */
  checkWritable(emptyWrite: () => unknown): void
}

/** Commits the writes of an event-loop tick in one transaction, because each commit waits for the disk. */
export function createWriteQueue({ database, toStoreError }: DatabaseFile): WriteQueue {
  const begin = database.prepare('BEGIN IMMEDIATE')
  const commit = database.prepare('COMMIT')
  const rollback = database.prepare('ROLLBACK')
  const queue: QueuedWrite[] = []
  /** Whether a transaction has failed since `checkWritable` last succeeded. */
  let hasFailed = false

  function transaction<T>(run: () => T): T {
    let isCommitting = false
    try {
      begin.run()
      const result = run()
      isCommitting = true
      commit.run()
      return result
    } catch (error) {
      try {
        rollback.run()
      } catch {
        // SQLite has already rolled the transaction back, or it never began.
      }
      hasFailed ||= !hasResultCode(error, BUSY)
      // A commit that found the disk full has not been written completely. After any other error, such as a failed
      // fsync, the WAL might contain the transaction, and the next process that opens the file would recover it.
      throw toStoreError(error, isCommitting && !hasResultCode(error, BUSY, FULL))
    }
  }

  function commitBatch(): void {
    const batch = queue.splice(0, MAX_BATCH)
    if (queue.length > 0) setImmediate(commitBatch)
    try {
      const settle = transaction(() => batch.map(runWrite))
      for (const callback of settle) callback()
    } catch (error) {
      for (const { reject } of batch) reject(error as Error)
    }
  }

  /** If a constraint or a size limit rejects this plant, the other writes of the batch still succeed. */
  function runWrite({ write, resolve, reject }: QueuedWrite): () => void {
    try {
      const result = write()
      return () => resolve(result)
    } catch (error) {
      if (!hasResultCode(error, CONSTRAINT, TOOBIG)) throw error
      return () => reject(toStoreError(error))
    }
  }

  return {
    add: (write) =>
      new Promise((resolve, reject) => {
        if (queue.push({ write, resolve, reject }) === 1) setImmediate(commitBatch)
      }),
    checkWritable(emptyWrite) {
      // After a failure, only a write to the file shows whether the disk accepts writes again.
      transaction(hasFailed ? () => database.exec(SET_APPLICATION_ID) : emptyWrite)
      hasFailed = false
    },
  }
}
