import type { Fault } from '../faults.ts'

const folder = 'src/stores/sqlite'

export const faults: readonly Fault[] = [
  {
    name: 'a transaction that has failed is not rolled back',
    file: `${folder}/connection.ts`,
    code: 'this.#rollback.run()',
    instead: '',
  },
  {
    name: 'a commit that has failed is taken to have done nothing',
    file: `${folder}/errors.ts`,
    code: 'isOutcomeUnknown: true',
    instead: 'isOutcomeUnknown: false',
  },
  {
    name: 'a group is halved although its commit may be done',
    file: `${folder}/write-queue.ts`,
    code: 'const isSure = !(error instanceof StoreUnavailableError)',
    instead: 'const isSure = true',
  },
  {
    name: 'a plant is written after a commit has failed before a commit without one',
    file: `${folder}/write-queue.ts`,
    code: 'if (this.#connection.failure instanceof StoreUnavailableError) this.#tryWrite()',
    instead: '',
  },
  {
    name: 'a write that has waited too long stays in the queue',
    file: `${folder}/write-queue.ts`,
    code: 'expiresAt > now)',
    instead: 'expiresAt > now - 1000)',
  },
  {
    name: 'the writes that a failed one was grouped with fail too',
    file: `${folder}/write-queue.ts`,
    code: 'if (isSure && group.length > 1) {',
    instead: 'if (isSure && group.length > 1_000) {',
  },
  {
    name: 'a ping commits nothing after a failure',
    file: `${folder}/write-queue.ts`,
    code: 'if (this.#connection.failure !== undefined) return this.#tryWrite()',
    instead: '',
  },
  {
    name: 'a failure takes the place of one of a commit',
    file: `${folder}/connection.ts`,
    code: ' && !(this.failure instanceof StoreUnavailableError)',
    instead: '',
  },
  {
    name: 'a file that was moved is written to',
    file: `${folder}/connection.ts`,
    code: 'this.#watched?.check()\n',
    instead: '',
  },
  {
    name: 'a file that was moved is read',
    file: `${folder}/connection.ts`,
    code: 'this.#watched?.checkForRead()\n',
    instead: '',
  },
  {
    name: 'a file that was moved and is back is not used again',
    file: `${folder}/watched-file.ts`,
    code: 'const isAway = found.some(',
    instead: 'const isAway = this.#isAway || found.some(',
  },
  {
    name: 'a list waits for a lock for ever',
    file: `${folder}/connection.ts`,
    code: 'if (!isBusy(error) || performance.now() >= deadline) throw this.explain(error)',
    instead: 'if (!isBusy(error)) throw this.explain(error)',
  },
]
