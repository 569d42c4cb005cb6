import type { MutantsByFile } from '../mutants.ts'

export const mutants: MutantsByFile = {
  'src/stores/sqlite/connection.ts': [
    ['a transaction that has failed is not rolled back', 'this.#rollback.run()', ''],
    ['another failure replaces the failure of a commit', ' && !(this.writeError instanceof StoreUnavailableError)', ''],
    ['a moved file is written to', 'this.#fileWatcher?.check()\n', ''],
    ['a moved file is read', 'this.#fileWatcher?.checkBeforeRead()\n', ''],
    [
      'a list waits for a lock without a time limit',
      'if (!isBusy(error) || performance.now() >= deadline) throw this.toStoreError(error)',
      'if (!isBusy(error)) throw this.toStoreError(error)',
    ],
    ['the statement of a failed list is reused', 'this.#failedReadCount++', ''],
    [
      'a list ends at an error on Deno',
      'this.#iteratorsThrow ? statement.iterate(...values) : statement.all(...values)',
      'statement.iterate(...values)',
    ],
    [
      'startup fails while the file is locked',
      '!isBusy((error as Error).cause) || waitedMs >= options.busyTimeoutMs',
      'true',
    ],
  ],
  'src/stores/sqlite/errors.ts': [
    ['a failed commit counts as not applied', 'isOutcomeUnknown: true', 'isOutcomeUnknown: false'],
  ],
  'src/stores/sqlite/write-queue.ts': [
    [
      'a batch is split although its commit may have been applied',
      'const isOutcomeKnown = !(error instanceof StoreUnavailableError)',
      'const isOutcomeKnown = true',
    ],
    [
      'after a failed commit, a plant is written without a successful probe',
      'if (this.#connection.writeError instanceof StoreUnavailableError) this.#probeWrite()',
      '',
    ],
    ['an expired write stays in the queue', 'expiresAt > now)', 'expiresAt > now - 1000)'],
    [
      'a failed write fails its whole batch',
      'if (isOutcomeKnown && batch.length > 1) {',
      'if (isOutcomeKnown && batch.length > 1_000) {',
    ],
    [
      'a ping does not commit after a failure',
      'if (this.#connection.writeError !== undefined) return this.#probeWrite()',
      '',
    ],
  ],
  'src/stores/sqlite/file-watcher.ts': [
    [
      'a file that was moved away and back is not used again',
      'const isMissing = currentStats.some(',
      'const isMissing = this.#isMissing || currentStats.some(',
    ],
  ],
}
