import {
  CREATE_MANY,
  CREATE_ONE,
  CREATE_TABLE,
  DELETE_MANY,
  DELETE_ONE,
  TABLE_EXISTS,
  LIST,
  LIST_LARGE,
  type Statement,
} from '../../../src/stores/postgres/statements.ts'
import { INSPECT_TABLE } from '../../../src/stores/postgres/table-inspection.ts'
import type { Query, QueryResult } from '../../../src/stores/postgres/pool.ts'
import { createServerError } from '../../support/database/errors.ts'
import { createInspectionResult } from '../../support/database/mock-pool.ts'
import { INVALID_PREFIX } from '../clients.ts'
import type { Simulation } from '../simulation.ts'
import { getPlantKey, listPlantsAfter, type Call, type ReferenceModel } from '../reference-model.ts'
import type { Scenario } from './scenario.ts'
import { isProbeWrite, type TrackedQuery } from './tracked-query.ts'

const LARGE_BYTES = 1024

const STATEMENTS = [CREATE_MANY, CREATE_ONE, CREATE_TABLE, DELETE_MANY, DELETE_ONE, TABLE_EXISTS, LIST, LIST_LARGE]

/** Maps SQL texts to statements. The table is in the schema `public`. */
const STATEMENTS_BY_TEXT = new Map(
  STATEMENTS.flatMap((statement) =>
    [true, false].map(
      (resetsCommitSettings) => [statement.text({ schema: 'public', resetsCommitSettings }), statement] as const,
    ),
  ),
)

/**
 * A Postgres cluster as seen by its stores, with the plants of the current leader. A former leader continues to
 * serve its sessions, but its commits are lost.
 */
export class Cluster {
  readonly truth: ReferenceModel
  /** When batches of writes were formed. */
  readonly batchTimes: number[] = []
  readonly #scenario: Scenario
  readonly #world: Simulation
  /** The number of failovers so far. Sessions of a former leader see the plants of that time. */
  leader = 0
  readonly #oldSnapshots = new Map<number, ReadonlyMap<string, string>>()
  hasTable: boolean
  readonly hasForeignTables: boolean
  /** Whether all creates fail with `writeFailureCode`, as on a full disk. */
  rejectsCreates = false
  writeFailureCode = '53100'
  rejectsCreatesSince = -Infinity
  isReadOnly = false
  defect: number | undefined
  /** Whether a pooler provides sessions whose search_path leads to another table of the same name. */
  hasOtherSearchPath = false
  hasStandby = true
  /** Commits that no standby has. */
  #unconfirmedChanges: { readonly key: string; readonly before: string | undefined }[] = []

  constructor(world: Simulation, truth: ReferenceModel, scenario: Scenario) {
    this.#scenario = scenario
    this.#world = world
    this.truth = truth
    this.hasTable = !scenario.isTableMissing
    this.hasForeignTables = scenario.hasForeignTables
  }

  #faultyUntil = -Infinity

  /** Records that a fault lasts for `ms` from now on. */
  recordFault(ms: number): void {
    this.#faultyUntil = Math.max(this.#faultyUntil, this.#world.time.now + ms)
  }

  /** Whether there has been no fault since a certain time. */
  isHealthySince(time: number): boolean {
    return this.#faultyUntil < time && this.hasTable
  }

  /** Promotes the standby. Commits that only the old leader has are lost. */
  failOver(): void {
    this.#oldSnapshots.set(this.leader++, new Map(this.truth.plants))
    for (const { key, before } of this.#unconfirmedChanges.splice(0).reverse()) {
      if (this.truth.plants.get(key) !== before) this.truth.setPlant(key, before)
    }
  }

  restoreStandby(): void {
    this.hasStandby = true
    this.#unconfirmedChanges = []
  }

  /** Whether a statement has to wait for the standby before its commit becomes visible. */
  waitsForStandby({ writes }: TrackedQuery, leader: number): boolean {
    const plants = this.#getPlantsSeenBy(leader)
    const changes = writes.some(({ key, name }) => plants.has(key) !== (name !== undefined))
    return changes && (leader !== this.leader || !this.hasStandby)
  }

  /** Commits a statement without waiting for the standby any longer. */
  executeUnconfirmed(trackedQuery: TrackedQuery, leader: number): QueryResult {
    for (const call of trackedQuery.writes) call.isUnconfirmed = true
    const keys = trackedQuery.writes.map(({ key }) => key.split(' '))
    if (leader !== this.leader) return { rows: keys, rowCount: keys.length }
    const before = trackedQuery.writes.map(({ key }) => ({ key, before: this.truth.plants.get(key) }))
    this.#unconfirmedChanges.push(...before)
    return this.execute(trackedQuery, leader)
  }

  /** Returns the error with which a server rejects a statement, if any. */
  getRejection({ query, statement, writes, hadTable }: TrackedQuery, leader: number): Error | undefined {
    if (query.text === INSPECT_TABLE) return undefined
    const isRead = isList(statement) || statement === TABLE_EXISTS
    if (this.isReadOnly && leader === this.leader && !isRead) return createServerError('25006')
    // When two sessions create the table concurrently, the second one fails despite IF NOT EXISTS.
    if (statement === CREATE_TABLE) return this.hasTable && !hadTable ? createServerError('42P07') : undefined
    if (!this.hasTable) return createServerError('42P01')
    if (writes.some(({ name }) => name?.startsWith(INVALID_PREFIX))) return createServerError('22021')
    const plants = this.#getPlantsSeenBy(leader)
    const isCreate = writes.some(({ key, name }) => name !== undefined && !plants.has(key))
    return this.rejectsCreates && (isCreate || isProbeWrite(query))
      ? createServerError(this.writeFailureCode)
      : undefined
  }

  /** Executes a statement. */
  execute(trackedQuery: TrackedQuery, leader: number): QueryResult {
    const { query, statement } = trackedQuery
    if (query.text === INSPECT_TABLE) return this.#inspect(trackedQuery)
    if (statement === TABLE_EXISTS) return { rows: [['public.plant_store_plants']], rowCount: 1 }
    if (isList(statement)) return this.#list(trackedQuery, leader)
    if (statement === CREATE_TABLE) this.hasTable = true
    return this.#write(trackedQuery, leader)
  }

  /** Returns the result of the inspection of a new connection. */
  #inspect({ query, hasFoundSchema: knowsSchema }: TrackedQuery): QueryResult {
    const [known] = query.values as (string | null)[]
    // A store that starts with such a session can't detect the wrong table.
    const schema = known ?? (this.hasOtherSearchPath && knowsSchema ? 'other' : 'public')
    const defects = [
      { serverEncoding: 'LATIN1' },
      { clientEncoding: 'LATIN1' },
      { outdated: 'en-x-icu' },
      { problems: 'its column id is integer' },
    ]
    return createInspectionResult({
      isReadOnly: this.isReadOnly,
      hasForeignTables: this.hasForeignTables,
      schema: this.hasTable ? schema : null,
      currentSchema: schema,
      mayCommitEarly: this.#scenario.hidesWarnings && !this.hasForeignTables,
      ...defects[this.defect ?? defects.length],
    })
  }

  #list({ query: { values }, statement, reads }: TrackedQuery, leader: number): QueryResult {
    const [owner, from, limit, maxBytes] = values as [string, string, number, number | undefined]
    const isLargeList = statement === LIST_LARGE
    for (const call of reads) call.isStale ||= leader !== this.leader
    const rows = listPlantsAfter(this.#getPlantsSeenBy(leader), owner, BigInt(from) - 1n).slice(0, limit)
    let bytes = 0
    const lastIndex = rows.findIndex(([, name]) => (bytes += name.length) >= (maxBytes ?? Infinity))
    return {
      rows: rows.slice(0, lastIndex === -1 ? undefined : lastIndex + 1).map(([id, name], index) => {
        if (isLargeList) return [String(id), name, null, index + 1 < rows.length ? 't' : 'f']
        return [String(id), name.length < LARGE_BYTES ? name : null, null]
      }),
      rowCount: rows.length,
    }
  }

  #write({ statement, writes }: TrackedQuery, leader: number): QueryResult {
    const changed = writes.filter((call) => {
      // Changes of a former leader never get here, because they wait for its standby.
      call.isStale ||= leader !== this.leader
      return leader === this.leader && this.truth.applyWrite(call)
    })
    const isMany = statement === CREATE_MANY || statement === DELETE_MANY
    return { rows: isMany ? changed.map(({ key }) => key.split(' ')) : [], rowCount: changed.length }
  }

  #getPlantsSeenBy(leader: number): ReadonlyMap<string, string> {
    return this.#oldSnapshots.get(leader) ?? this.truth.plants
  }

  /** Finds the pending calls that a query serves. */
  trackQuery(query: Query, calls: ReadonlySet<Call>, knowsSchema: boolean): TrackedQuery {
    const { text, values } = query
    const statement = STATEMENTS_BY_TEXT.get(text)
    const isInSchema = text === INSPECT_TABLE || text.includes('"public".plant_store_plants')
    this.#world.check(isInSchema, 'every statement names the schema where the table was found:', text)
    const isAtTable = text !== INSPECT_TABLE || !knowsSchema || values[0] === 'public'
    this.#world.check(isAtTable, 'an inspection checks the table that was found first')
    const isOne = statement === CREATE_ONE || statement === DELETE_ONE
    const isMany = statement === CREATE_MANY || statement === DELETE_MANY
    const isCreate = statement === CREATE_ONE || statement === CREATE_MANY
    const columns = (isOne ? values.map((value) => [value]) : isMany ? values : [[]]) as string[][]
    const writes = columns[0]!.flatMap((owner, index) => {
      const [key, name] = [getPlantKey(owner, columns[1]![index]!), isCreate ? columns[2]![index] : undefined]
      const call = [...this.truth.pendingWrites].find((write) => write.key === key && write.name === name)
      this.#world.check(call !== undefined, 'no statement is sent for a settled call:', key)
      if (call === undefined) return []
      const { timeoutMs } = this.#scenario
      const waitedMs = this.batchTimes.find((batchedAt) => batchedAt >= call.startedAt)! - call.startedAt
      const isInTime = waitedMs <= timeoutMs && this.#world.time.now <= call.startedAt + 2 * timeoutMs
      this.#world.check(isInTime, 'no statement is sent for a call that has waited too long:', key)
      return call
    })
    // Ordered by key, then by arrival.
    writes.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    const reads = isList(statement) ? [...calls].filter(({ kind, key }) => kind === 'list' && key === values[0]) : []
    this.#world.check(!isList(statement) || reads.length > 0, 'no list is sent without a pending call')
    const sawTable = this.hasTable
    return {
      query: { ...query, values: [...values] },
      statement,
      writes,
      reads,
      hadTable: sawTable,
      hasFoundSchema: knowsSchema,
    }
  }
}

function isList(statement: Statement | undefined): boolean {
  return statement === LIST || statement === LIST_LARGE
}
