import type { MutantsByFile } from '../mutants.ts'

export const mutants: MutantsByFile = {
  'src/stores/sqlite/connection.ts': [
    ['a transaction that has failed is not rolled back', 'this.#rollback.run()', ''],
    ['a failure takes the place of one of a commit', ' && !(this.writeError instanceof StoreUnavailableError)', ''],
    ['a file that was moved is written to', 'this.#fileWatcher?.check()\n', ''],
    ['a file that was moved is read', 'this.#fileWatcher?.checkBeforeRead()\n', ''],
    [
      'a list waits for a lock for ever',
      'if (!isBusy(error) || performance.now() >= deadline) throw this.toStoreError(error)',
      'if (!isBusy(error)) throw this.toStoreError(error)',
    ],
    ['the statement of a failed list is used again', 'this.#failedReadCount++', ''],
    [
      'a list ends at an error on Deno',
      'this.#iteratorsThrow ? statement.iterate(...values) : statement.all(...values)',
      'statement.iterate(...values)',
    ],
    [
      'a start fails while the file is locked',
      '!isBusy((error as Error).cause) || waitedMs >= options.busyTimeoutMs',
      'true',
    ],
  ],
  'src/stores/sqlite/errors.ts': [
    ['a commit that has failed is taken to have done nothing', 'isOutcomeUnknown: true', 'isOutcomeUnknown: false'],
  ],
  'src/stores/sqlite/write-queue.ts': [
    [
      'a group is halved although its commit may be done',
      'const isOutcomeKnown = !(error instanceof StoreUnavailableError)',
      'const isOutcomeKnown = true',
    ],
    [
      'a plant is written after a commit has failed before a commit without one',
      'if (this.#connection.writeError instanceof StoreUnavailableError) this.#probeWrite()',
      '',
    ],
    ['a write that has waited too long stays in the queue', 'expiresAt > now)', 'expiresAt > now - 1000)'],
    [
      'the writes that a failed one was grouped with fail too',
      'if (isOutcomeKnown && batch.length > 1) {',
      'if (isOutcomeKnown && batch.length > 1_000) {',
    ],
    [
      'a ping commits nothing after a failure',
      'if (this.#connection.writeError !== undefined) return this.#probeWrite()',
      '',
    ],
  ],
  'src/stores/sqlite/file-watcher.ts': [
    [
      'a file that was moved and is back is not used again',
      'const isMissing = currentStats.some(',
      'const isMissing = this.#isMissing || currentStats.some(',
    ],
  ],
}
