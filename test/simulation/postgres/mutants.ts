import type { MutantsByFile } from '../mutants.ts'

export const mutants: MutantsByFile = {
  'src/stores/postgres/errors.ts': [
    [
      'a session that an administrator ends is taken to have done nothing',
      'OUTCOME_UNKNOWN_STATES = /^(?:08(?!001)|57P(?!03)|',
      'OUTCOME_UNKNOWN_STATES = /^(?:08(?!001)|',
    ],
    ['an I/O error is taken to have done nothing', '|40003|58030)/', '|40003)/'],
    [
      'a session whose transaction was aborted is used again',
      'UNUSABLE_SESSION_STATES = /^(?:08(?!001)|57P|25006|25P0[234]|',
      'UNUSABLE_SESSION_STATES = /^(?:08(?!001)|57P|25006|25P0[34]|',
    ],
  ],
  'src/stores/postgres/cancel.ts': [
    [
      'a cancellation never ends if the server ends its connection before TLS',
      "else reject(new Error('The server closed the connection before the cancel request was sent.'))",
      '',
    ],
  ],
  'src/stores/postgres/statement-sender.ts': [
    [
      'a statement that loses a conflict is sent again after its time',
      'await this.#sendQuery(query, expiresAt,',
      'await this.#sendQuery(query, this.createDeadline(),',
    ],
    ['names are used on after a pooler has forgotten them', 'this.#usesPreparedStatements = false', ''],
    [
      'a ping says nothing of a write that hangs',
      'now - oldest.sentAt >= PROBE_TTL_MS',
      'now - oldest.sentAt >= 2 * PROBE_TTL_MS',
    ],
    [
      'a failed write is forgotten if retrying does not help',
      'if (!isRejectedValue(error)) this.#failedWrites.add(writes)',
      'if (error instanceof StoreUnavailableError) this.#failedWrites.add(writes)',
    ],
    [
      'a failed delete is forgotten once a create succeeds',
      'this.#failedWrites.delete(writes)',
      'this.#failedWrites.clear()',
    ],
    [
      'a probe that fails is ignored if retrying does not help',
      'if (!isRejectedValue(error)) throw error',
      'if (error instanceof StoreUnavailableError) throw error',
    ],
  ],
  'src/stores/postgres/query-runner.ts': [
    [
      'a connection is used that was checked before another one broke',
      'this.#checkedGenerations.set(connection, generation)',
      'this.#checkedGenerations.set(connection, this.#generation)',
    ],
    [
      'what was committed without its standby is believed',
      'if (hasUnconfirmedCommit(connection)) throw new UnconfirmedCommitError()',
      '',
    ],
    [
      'what was committed although it was late is believed not to be',
      '() => new UnconfirmedCommitError(),',
      "() => Object.assign(new Error(), { code: '57014' }),",
    ],
    [
      'a new connection is checked for the table that its own search_path finds',
      'hadTable ? this.#table.schema : null',
      'null',
    ],
    ['a commit without its standby is believed if the session hides the warning', '|| inspection.mayCommitEarly', ''],
    [
      'a connection that came too late is not given back',
      'if (pending.timeoutError !== undefined) connection.release()\n    throwIfTimedOut(pending)',
      'throwIfTimedOut(pending)',
    ],
    [
      'a cancellation of a server with others behind it is believed',
      'if (!this.#hasForeignTables || !isCanceled(reason)) throw reason',
      'throw reason',
    ],
    [
      'a late server is not told to cancel',
      'const wasRequested = await this.#requestCancel(connection)',
      'const wasRequested = true',
    ],
  ],
  'src/stores/postgres/outage-detector.ts': [
    [
      'closing a store does not end the silence that it waits for',
      'this.#end()\n    this.#lastResponseAt',
      'this.#lastResponseAt',
    ],
  ],
  'src/stores/postgres/statements.ts': [
    [
      'statements leave it to the search_path which table they mean',
      '`"${schema.replaceAll(\'"\', \'""\')}".plant_store_plants`',
      "'plant_store_plants' + schema.slice(0, 0)",
    ],
  ],
  'src/stores/postgres/postgres-store.ts': [
    [
      'the second of two equal writes of a group is told what the first is',
      'changedKeys.delete(`${owner} ${id}`)',
      'changedKeys.has(`${owner} ${id}`)',
    ],
  ],
}
