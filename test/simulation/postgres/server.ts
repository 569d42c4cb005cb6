import {
  CREATE_MANY,
  CREATE_ONE,
  CREATE_TABLE,
  DELETE_MANY,
  DELETE_ONE,
  FIND_TABLE,
  LIST,
  LIST_LARGE,
  LOOK,
  type Statement,
} from '../../../src/stores/postgres/statements.ts'
import type { Query, QueryResult } from '../../../src/stores/postgres/pool.ts'
import { serverError } from '../../support/database/failures.ts'
import { lookResult } from '../../support/database/pool-of.ts'
import { BAD } from '../clients.ts'
import type { World } from '../simulation.ts'
import { keyOf, pageOf, type Call, type Truth } from '../truth.ts'
import type { Scenario } from './scenario.ts'
import { isTry } from './thrift.ts'

/** What a server is asked, and for whom. */
export interface Asked {
  readonly query: Query
  /** Undefined if it is a look, or what a ping sends. */
  readonly statement: Statement | undefined
  /** The calls whose plants it writes. */
  readonly writes: readonly Call[]
  readonly reads: readonly Call[]
  /** Whether there was a table when it was sent. */
  readonly sawTable: boolean
  /** Whether the store has found the table before. */
  readonly knowsSchema: boolean
}

const LARGE = 1024

const STATEMENTS = [CREATE_MANY, CREATE_ONE, CREATE_TABLE, DELETE_MANY, DELETE_ONE, FIND_TABLE, LIST, LIST_LARGE]

/** The statements by their texts; the table is in the schema `public`. */
const BY_TEXT = new Map(
  STATEMENTS.flatMap((statement) =>
    [true, false].map((ensuresCommits) => [statement.text({ schema: 'public', ensuresCommits }), statement] as const),
  ),
)

/**
 * A cluster of Postgres, as far as its stores can see it: one server leads, and plants are what that has. A server that
 * led before goes on with the sessions that it has, and nobody hears of what it commits.
 */
export class Cluster {
  readonly truth: Truth
  /** When groups of writes were formed. */
  readonly groupedAt: number[] = []
  readonly #scenario: Scenario
  readonly #world: World
  /** Counts fail-overs: sessions of an earlier leader see what was there then. */
  leader = 0
  readonly #old = new Map<number, ReadonlyMap<string, string>>()
  hasTable: boolean
  readonly isForeign: boolean
  /** Whether all creates fail, and with which code, as on a full disk. */
  isFull = false
  writeFailure = '53100'
  fullSince = -Infinity
  isReadOnly = false
  isUnfit: number | undefined
  /** Whether sessions have a search_path that leads to another table of that name, as a pooler can lend them. */
  isDiverted = false
  hasStandby = true
  /** What was committed although no standby has it. */
  #unconfirmed: { readonly key: string; readonly before: string | undefined }[] = []

  constructor(world: World, truth: Truth, scenario: Scenario) {
    this.#scenario = scenario
    this.#world = world
    this.truth = truth
    this.hasTable = !scenario.lacksTable
    this.isForeign = scenario.isForeign
  }

  #troubledUntil = -Infinity

  /** Notes that something is not well for so long. */
  trouble(ms: number): void {
    this.#troubledUntil = Math.max(this.#troubledUntil, this.#world.time.now + ms)
  }

  /** Whether all has been well since then. */
  isWellSince(time: number): boolean {
    return this.#troubledUntil < time && this.hasTable
  }

  /** The standby leads now. What only the old leader has is not there. */
  failOver(): void {
    this.#old.set(this.leader++, new Map(this.truth.plants))
    for (const { key, before } of this.#unconfirmed.splice(0).reverse()) {
      if (this.truth.plants.get(key) !== before) this.truth.set(key, before)
    }
  }

  standbyIsBack(): void {
    this.hasStandby = true
    this.#unconfirmed = []
  }

  /** Whether a statement waits for the standby before it is done for others to see. */
  waitsForStandby({ writes }: Asked, leader: number): boolean {
    const plants = this.#plantsOf(leader)
    const changes = writes.some(({ key, name }) => plants.has(key) !== (name !== undefined))
    return changes && (leader !== this.leader || !this.hasStandby)
  }

  /** Commits what has waited for the standby, without it. */
  runUnconfirmed(asked: Asked, leader: number): QueryResult {
    for (const call of asked.writes) call.isUnconfirmed = true
    const keys = asked.writes.map(({ key }) => key.split(' '))
    if (leader !== this.leader) return { rows: keys, rowCount: keys.length }
    const before = asked.writes.map(({ key }) => ({ key, before: this.truth.plants.get(key) }))
    this.#unconfirmed.push(...before)
    return this.run(asked, leader)
  }

  /** Why a server does not carry out a statement. */
  refusal({ query, statement, writes, sawTable }: Asked, leader: number): Error | undefined {
    if (query.text === LOOK.text) return undefined
    const isRead = isList(statement) || statement === FIND_TABLE
    if (this.isReadOnly && leader === this.leader && !isRead) return serverError('25006')
    // The second of two that make it at once is refused, although it says IF NOT EXISTS.
    if (statement === CREATE_TABLE) return this.hasTable && !sawTable ? serverError('42P07') : undefined
    if (!this.hasTable) return serverError('42P01')
    if (writes.some(({ name }) => name?.startsWith(BAD))) return serverError('22021')
    const plants = this.#plantsOf(leader)
    const isCreate = writes.some(({ key, name }) => name !== undefined && !plants.has(key))
    return this.isFull && (isCreate || isTry(query)) ? serverError(this.writeFailure) : undefined
  }

  /** Carries out a statement. */
  run(asked: Asked, leader: number): QueryResult {
    const { query, statement } = asked
    if (query.text === LOOK.text) return this.#look(asked)
    if (statement === FIND_TABLE) return { rows: [['public.plant_store_plants']], rowCount: 1 }
    if (isList(statement)) return this.#list(asked, leader)
    if (statement === CREATE_TABLE) this.hasTable = true
    return this.#write(asked, leader)
  }

  /** What a look at a new connection returns. */
  #look({ query, knowsSchema }: Asked): QueryResult {
    const [known] = query.values as (string | null)[]
    // A store that starts with such a session can't know better.
    const found = known ?? (this.isDiverted && knowsSchema ? 'other' : 'public')
    const wrongs = [
      { serverEncoding: 'LATIN1' },
      { clientEncoding: 'LATIN1' },
      { outdated: 'en-x-icu' },
      { problems: 'its column id is integer' },
    ]
    return lookResult({
      isReadOnly: this.isReadOnly,
      hasForeignTables: this.isForeign,
      schema: this.hasTable ? found : null,
      currentSchema: found,
      mayCommitEarly: this.#scenario.hidesWarnings && !this.isForeign,
      ...wrongs[this.isUnfit ?? wrongs.length],
    })
  }

  #list({ query: { values }, statement, reads }: Asked, leader: number): QueryResult {
    const [owner, from, limit, maxBytes] = values as [string, string, number, number | undefined]
    const isAll = statement === LIST_LARGE
    for (const call of reads) call.isStale ||= leader !== this.leader
    const rows = pageOf(this.#plantsOf(leader), owner, BigInt(from) - 1n).slice(0, limit)
    let bytes = 0
    const cut = rows.findIndex(([, name]) => (bytes += name.length) >= (maxBytes ?? Infinity))
    return {
      rows: rows.slice(0, cut === -1 ? undefined : cut + 1).map(([id, name], at) => {
        if (isAll) return [String(id), name, null, at + 1 < rows.length ? 't' : 'f']
        return [String(id), name.length < LARGE ? name : null, null]
      }),
      rowCount: rows.length,
    }
  }

  #write({ statement, writes }: Asked, leader: number): QueryResult {
    const changed = writes.filter((call) => {
      // Nothing that an old leader changes gets this far, as it waits for its standby.
      call.isStale ||= leader !== this.leader
      return leader === this.leader && this.truth.write(call)
    })
    const isMany = statement === CREATE_MANY || statement === DELETE_MANY
    return { rows: isMany ? changed.map(({ key }) => key.split(' ')) : [], rowCount: changed.length }
  }

  #plantsOf(leader: number): ReadonlyMap<string, string> {
    return this.#old.get(leader) ?? this.truth.plants
  }

  /** Finds for whom a statement is sent: only a call that is under way may have one. */
  ask(query: Query, calls: ReadonlySet<Call>, knowsSchema: boolean): Asked {
    const { text, values } = query
    const statement = BY_TEXT.get(text)
    const isInSchema = text === LOOK.text || text.includes('"public".plant_store_plants')
    this.#world.expect(isInSchema, 'each statement names the schema where the table was found:', text)
    const isAtTable = text !== LOOK.text || !knowsSchema || values[0] === 'public'
    this.#world.expect(isAtTable, 'a look is at the table that was found first')
    const isOne = statement === CREATE_ONE || statement === DELETE_ONE
    const isMany = statement === CREATE_MANY || statement === DELETE_MANY
    const isCreate = statement === CREATE_ONE || statement === CREATE_MANY
    const columns = (isOne ? values.map((value) => [value]) : isMany ? values : [[]]) as string[][]
    const writes = columns[0]!.flatMap((owner, at) => {
      const [key, name] = [keyOf(owner, columns[1]![at]!), isCreate ? columns[2]![at] : undefined]
      const call = [...this.truth.writes].find((write) => write.key === key && write.name === name)
      this.#world.expect(call !== undefined, 'no statement begins of a call that has ended:', key)
      if (call === undefined) return []
      const { timeoutMs } = this.#scenario
      const waitedMs = this.groupedAt.find((at) => at >= call.startedAt)! - call.startedAt
      const isInTime = waitedMs <= timeoutMs && this.#world.time.now <= call.startedAt + 2 * timeoutMs
      this.#world.expect(isInTime, 'no statement begins of a call that has waited too long:', key)
      return call
    })
    // In the order of the key, and then of arrival.
    writes.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0))
    const readers = isList(statement) ? [...calls].filter(({ kind, key }) => kind === 'list' && key === values[0]) : []
    this.#world.expect(!isList(statement) || readers.length > 0, 'no list begins that nobody waits for')
    const sawTable = this.hasTable
    return { query: { ...query, values: [...values] }, statement, writes, reads: readers, sawTable, knowsSchema }
  }
}

function isList(statement: Statement | undefined): boolean {
  return statement === LIST || statement === LIST_LARGE
}
