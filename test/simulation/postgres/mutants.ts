import type { MutantsByFile } from '../mutants.ts'

export const mutants: MutantsByFile = {
  'src/stores/postgres/errors.ts': [
    [
      'a statement counts as not applied when an administrator terminates its session',
      'OUTCOME_UNKNOWN_STATES = /^(?:08(?!001)|57P(?!03)|',
      'OUTCOME_UNKNOWN_STATES = /^(?:08(?!001)|',
    ],
    ['an I/O error counts as not applied', '|40003|58030)/', '|40003)/'],
    [
      'a session with an aborted transaction is reused',
      'UNUSABLE_SESSION_STATES = /^(?:08(?!001)|57P|25006|25P0[234]|',
      'UNUSABLE_SESSION_STATES = /^(?:08(?!001)|57P|25006|25P0[34]|',
    ],
  ],
  'src/stores/postgres/cancel.ts': [
    [
      'a cancellation never settles if the server closes its connection before TLS',
      "else reject(new Error('The server closed the connection before the cancel request was sent.'))",
      '',
    ],
  ],
  'src/stores/postgres/statement-sender.ts': [
    [
      'a statement is retried after its deadline',
      'await this.#sendQuery(query, expiresAt,',
      'await this.#sendQuery(query, this.createDeadline(),',
    ],
    ['statement names are still used after a pooler has lost them', 'this.#usesPreparedStatements = false', ''],
    [
      'a ping does not report a hanging write',
      'now - oldest.sentAt >= PROBE_TTL_MS',
      'now - oldest.sentAt >= 2 * PROBE_TTL_MS',
    ],
    [
      'a failed write is forgotten if its error is permanent',
      'if (!isRejectedValue(error)) this.#failedWrites.add(writes)',
      'if (error instanceof StoreUnavailableError) this.#failedWrites.add(writes)',
    ],
    [
      'a failed delete is forgotten once a create succeeds',
      'this.#failedWrites.delete(writes)',
      'this.#failedWrites.clear()',
    ],
    [
      'a failed probe is ignored if its error is permanent',
      'if (!isRejectedValue(error)) throw error',
      'if (error instanceof StoreUnavailableError) throw error',
    ],
  ],
  'src/stores/postgres/query-runner.ts': [
    [
      'a connection that was checked before another one broke is used without a new check',
      'this.#checkedGenerations.set(connection, generation)',
      'this.#checkedGenerations.set(connection, this.#generation)',
    ],
    [
      'a commit that the standby has not confirmed is acknowledged',
      'if (hasUnconfirmedCommit(connection)) throw new UnconfirmedCommitError()',
      '',
    ],
    [
      'a late write that was committed after all counts as not applied',
      '() => new UnconfirmedCommitError(),',
      "() => Object.assign(new Error(), { code: '57014' }),",
    ],
    [
      'a new connection is checked for the table that its own search_path finds',
      'hadTable ? this.#table.schema : null',
      'null',
    ],
    ['an unconfirmed commit is acknowledged if the session hides the warning', '|| inspection.mayCommitEarly', ''],
    [
      'a connection that arrives after the timeout is not released',
      'if (pending.timeoutError !== undefined) connection.release()\n    throwIfTimedOut(pending)',
      'throwIfTimedOut(pending)',
    ],
    [
      'a cancellation counts as not applied although the table is on other servers',
      'if (!this.#hasForeignTables || !isCanceled(reason)) throw reason',
      'throw reason',
    ],
    [
      'a late statement is not canceled',
      'const wasRequested = await this.#requestCancel(connection)',
      'const wasRequested = true',
    ],
  ],
  'src/stores/postgres/outage-detector.ts': [
    [
      'closing a store does not end its wait for an unresponsive server',
      'this.#end()\n    this.#lastResponseAt',
      'this.#lastResponseAt',
    ],
  ],
  'src/stores/postgres/statements.ts': [
    [
      'statements rely on the search_path to find the table',
      '`"${schema.replaceAll(\'"\', \'""\')}".plant_store_plants`',
      "'plant_store_plants' + schema.slice(0, 0)",
    ],
  ],
  'src/stores/postgres/postgres-store.ts': [
    [
      'the second of two equal writes in a batch gets the result of the first',
      'changedKeys.delete(`${owner} ${id}`)',
      'changedKeys.has(`${owner} ${id}`)',
    ],
  ],
}
