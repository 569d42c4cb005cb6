import type { Faults } from '../faults.ts'

export const faults: Faults = {
  'src/stores/postgres/failure.ts': [
    [
      'a session that an administrator ends is taken to have done nothing',
      'OUTCOME_UNKNOWN = /^(?:08(?!001)|57P(?!03)|',
      'OUTCOME_UNKNOWN = /^(?:08(?!001)|',
    ],
    ['an I/O error is taken to have done nothing', '|40003|58030)/', '|40003)/'],
    [
      'a session whose transaction was aborted is used again',
      'UNUSABLE_SESSION = /^(?:08(?!001)|57P|25006|25P0[234]|',
      'UNUSABLE_SESSION = /^(?:08(?!001)|57P|25006|25P0[34]|',
    ],
  ],
  'src/stores/postgres/cancel.ts': [
    [
      'a cancellation never ends if the server ends its connection before TLS',
      "else reject(new Error('The server took no cancellation.'))",
      '',
    ],
  ],
  'src/stores/postgres/sender.ts': [
    [
      'a statement that loses a conflict is sent again after its time',
      'await this.#sendQuery(query, expiresAt,',
      'await this.#sendQuery(query, this.deadline(),',
    ],
    ['names are used on after a pooler has forgotten them', 'this.#prepares = false', ''],
    [
      'a ping says nothing of a write that hangs',
      'now - oldest.sentAt >= TRUST_MS',
      'now - oldest.sentAt >= 2 * TRUST_MS',
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
      'this.#checked.set(connection, era)',
      'this.#checked.set(connection, this.#era)',
    ],
    [
      'what was committed without its standby is believed',
      'if (unconfirmed.has(connection)) throw new UnconfirmedError()',
      '',
    ],
    [
      'what was committed although it was late is believed not to be',
      '() => new UnconfirmedError(),',
      "() => Object.assign(new Error(), { code: '57014' }),",
    ],
    [
      'a new connection is checked for the table that its own search_path finds',
      'hadTable ? this.#table.schema : null',
      'null',
    ],
    ['a commit without its standby is believed if the session hides the warning', '|| look.mayCommitEarly', ''],
    [
      'a connection that came too late is not given back',
      'if (pending.timeout !== undefined) connection.release()\n    throwIfLate(pending)',
      'throwIfLate(pending)',
    ],
    [
      'a cancellation of a server with others behind it is believed',
      'if (!this.#hasForeignTables || !isCancelled(reason)) throw reason',
      'throw reason',
    ],
    [
      'a late server is not told to cancel',
      'const wasTold = await this.#tellToCancel(connection)',
      'const wasTold = true',
    ],
  ],
  'src/stores/postgres/connect.ts': [
    ['closing a store does not end the silence that it waits for', 'this.#end()\n    this.#lastOver', 'this.#lastOver'],
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
      'changed.delete(`${owner} ${id}`)',
      'changed.has(`${owner} ${id}`)',
    ],
  ],
}
