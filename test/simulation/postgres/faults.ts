import type { Fault } from '../faults.ts'

const folder = 'src/stores/postgres'

export const faults: readonly Fault[] = [
  {
    name: 'a session that an administrator ends is taken to have done nothing',
    file: `${folder}/failure.ts`,
    code: '/^(?:08(?!001)|57P(?!03)|25P04|40003)/',
    instead: '/^(?:08(?!001)|25P04|40003)/',
  },
  {
    name: 'a cancellation never ends if the server ends its connection before TLS',
    file: `${folder}/cancel.ts`,
    code: "else reject(new Error('The server took no cancellation.'))",
    instead: '',
  },
  {
    name: 'a statement that loses a conflict is sent again after its time',
    file: `${folder}/sender.ts`,
    code: 'await this.#sendQuery(query, expiresAt)',
    instead: 'await this.#sendQuery(query, this.deadline())',
  },
  {
    name: 'a connection is used that was checked before another one broke',
    file: `${folder}/query-runner.ts`,
    code: 'this.#checked.set(connection, era)',
    instead: 'this.#checked.set(connection, this.#era)',
  },
  {
    name: 'what was committed without its standby is believed',
    file: `${folder}/query-runner.ts`,
    code: 'if (unconfirmed.has(connection)) throw new UnconfirmedError()',
    instead: '',
  },
  {
    name: 'what was committed although it was late is believed not to be',
    file: `${folder}/query-runner.ts`,
    code: '() => new UnconfirmedError(),',
    instead: "() => Object.assign(new Error(), { code: '57014' }),",
  },
  {
    name: 'a connection that came too late is not given back',
    file: `${folder}/query-runner.ts`,
    code: 'if (pending.timeout !== undefined) connection.release()\n    throwIfLate(pending)',
    instead: 'throwIfLate(pending)',
  },
  {
    name: 'a cancellation of a server with others behind it is believed',
    file: `${folder}/query-runner.ts`,
    code: 'if (!this.#hasForeignTables || !isCancelled(reason)) throw reason',
    instead: 'throw reason',
  },
  {
    name: 'a late server is not told to cancel',
    file: `${folder}/query-runner.ts`,
    code: 'const wasTold = await this.#tellToCancel(connection)',
    instead: 'const wasTold = true',
  },
  {
    name: 'closing a store does not end the silence that it waits for',
    file: `${folder}/connect.ts`,
    code: 'this.#end()\n    this.#lastOver',
    instead: 'this.#lastOver',
  },
  {
    name: 'the second of two equal writes of a group is told what the first is',
    file: `${folder}/postgres-store.ts`,
    code: 'changed.delete(`${owner} ${id}`)',
    instead: 'changed.has(`${owner} ${id}`)',
  },
  {
    name: 'names are used on after a pooler has forgotten them',
    file: `${folder}/sender.ts`,
    code: 'this.#prepares = false',
    instead: '',
  },
  {
    name: 'a ping says nothing of a write that hangs',
    file: `${folder}/sender.ts`,
    code: 'now - oldest.startedAt >= TRUST_MS',
    instead: 'now - oldest.startedAt >= 2 * TRUST_MS',
  },
]
