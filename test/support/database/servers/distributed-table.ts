import type { ClientBase } from 'pg'
import type { Store } from '../../../../src/plants/store.ts'
import * as statements from '../../../../src/stores/postgres/statements.ts'
import type { Scope } from '../../child.ts'
import { blocksOf, programsOf, readDocument } from '../../package/documents.ts'
import { PostgresServer } from '../../wire/debian-servers.ts'

const DOCUMENT = readDocument('docs/scale.md')

/** What the document shows in place of a front. */
const [SPREAD] = programsOf(DOCUMENT)
export const { spread } = (await import(`data:text/javascript,${encodeURIComponent(SPREAD!.code)}`)) as {
  readonly spread: (stores: readonly Store[]) => Store
}

/** The SQL that the document shows under a heading. */
export function sqlOf(heading: string): string[] {
  return blocksOf(DOCUMENT, 'sql')
    .filter((block) => block.heading === heading)
    .map(({ code }) => code)
}

const [NODE = '', FRONT = ''] = sqlOf('Partitions on other servers')

/** A table whose partitions are on two other servers, as docs/scale.md makes it. */
export interface DistributedTable {
  /** The server that the service uses. */
  front: PostgresServer
  /** The servers that keep plants: those of the even partitions, and those of the odd ones. */
  nodes: PostgresServer[]
  /** An owner whose plants each of them keeps. */
  owners: string[]
}

export async function startDistributedTable(t: Scope): Promise<DistributedTable> {
  const front = await PostgresServer.start(t)
  const nodes = [await startNode(t), await startNode(t)]
  await front.query(withHosts(FRONT, nodes))
  const rows = await front.query<{ owner: string }>(
    `SELECT min(owner) AS owner FROM generate_series(1, 20) AS n, format('owner-%s', n) AS owner,
        satisfies_hash_partition('plant_store_plants'::regclass, 2, 1, owner) AS node
      GROUP BY node ORDER BY node`,
  )
  return { front, nodes, owners: rows.map(({ owner }) => owner) }
}

/** A server with the tables of the partitions, which may hand one over. */
export async function startNode(t: Scope): Promise<PostgresServer> {
  const node = await PostgresServer.start(t, ['wal_level=logical'])
  await node.query(NODE)
  return node
}

/** SQL of the document that leads to the servers of a test instead of 10.0.0.1 and so on. */
export function withHosts(sql: string, servers: readonly PostgresServer[]): string {
  const local = sql.replaceAll("dbname 'plants'", "dbname 'postgres'").replaceAll('dbname=plants', 'dbname=postgres')
  return servers.reduce(
    (text, { port }, index) =>
      text
        .replaceAll(`host '10.0.0.${index + 1}'`, `host '127.0.0.1', port '${port}'`)
        .replaceAll(`host=10.0.0.${index + 1}`, `host=127.0.0.1 port=${port}`),
    local,
  )
}

/** The statements that a store sends for one owner if its groups have one plant, but that which creates it. */
const OTHERS = { DELETE_ONE: '7', LIST: '7, 10', LIST_LARGE: '7, 10, 1000' }

const TABLE = { schema: 'public', ensuresCommits: false }

/** How often to run a statement: after five plans for their values, a connection may keep one for all. */
const TIMES = 8

/** Runs each statement for an owner. Settles with the last plans of those that are planned for a partition. */
export async function plansOf(client: ClientBase, owner: string): Promise<string[]> {
  await client.query(`PREPARE trial AS ${statements.CREATE_ONE.text(TABLE)}`)
  for (let id = 1; id <= TIMES; id++) await client.query(`EXECUTE trial ('${owner}', ${-id}, 'fern', NULL)`)
  await client.query('DEALLOCATE trial')
  const plans: string[] = []
  for (const [name, values] of Object.entries(OTHERS)) {
    await client.query(`PREPARE trial AS ${statements[name as keyof typeof OTHERS].text(TABLE)}`)
    let plan = ''
    for (let times = 0; times < TIMES; times++) plan = await explain(client, `EXECUTE trial ('${owner}', ${values})`)
    plans.push(plan)
    await client.query('DEALLOCATE trial')
  }
  return plans
}

/** Runs a statement and settles with how that was done. */
export async function explain(client: Pick<ClientBase, 'query'>, statement: string): Promise<string> {
  const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN (ANALYZE, VERBOSE) ${statement}`)
  return rows.map((row) => row['QUERY PLAN']).join('\n')
}
