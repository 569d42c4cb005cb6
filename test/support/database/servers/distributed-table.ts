import type { ClientBase } from 'pg'
import type { Store } from '../../../../src/plants/store.ts'
import * as statements from '../../../../src/stores/postgres/statements.ts'
import type { CleanupScope } from '../../child-process.ts'
import { findCodeBlocks, findPrograms, readDocument } from '../../package/documents.ts'
import { PostgresServer } from '../../wire/debian-servers.ts'

const DOCUMENT = readDocument('docs/scaling.md')

/** What the document shows in place of a front. */
const [SHARDING_EXAMPLE] = findPrograms(DOCUMENT)
export const { spread } = (await import(`data:text/javascript,${encodeURIComponent(SHARDING_EXAMPLE!.code)}`)) as {
  readonly spread: (stores: readonly Store[]) => Store
}

/** The SQL that the document shows under a heading. */
export function findSqlBlocks(heading: string): string[] {
  return findCodeBlocks(DOCUMENT, 'sql')
    .filter((block) => block.heading === heading)
    .map(({ code }) => code)
}

const [NODE_SQL = '', COORDINATOR_SQL = ''] = findSqlBlocks('Partitions on other servers')

/** A table whose partitions are on two other servers, as docs/scaling.md makes it. */
export interface DistributedTable {
  /** The server that the service uses. */
  coordinator: PostgresServer
  /** The servers that keep plants: those of the even partitions, and those of the odd ones. */
  nodes: PostgresServer[]
  /** An owner whose plants each of them keeps. */
  owners: string[]
}

export async function startDistributedTable(t: CleanupScope): Promise<DistributedTable> {
  const coordinator = await PostgresServer.start(t)
  const nodes = [await startNode(t), await startNode(t)]
  await coordinator.query(replaceHosts(COORDINATOR_SQL, nodes))
  const rows = await coordinator.query<{ owner: string }>(
    `SELECT min(owner) AS owner FROM generate_series(1, 20) AS n, format('owner-%s', n) AS owner,
        satisfies_hash_partition('plant_store_plants'::regclass, 2, 1, owner) AS node
      GROUP BY node ORDER BY node`,
  )
  return { coordinator, nodes, owners: rows.map(({ owner }) => owner) }
}

/** A server with the tables of the partitions, which may hand one over. */
export async function startNode(t: CleanupScope): Promise<PostgresServer> {
  const node = await PostgresServer.start(t, ['wal_level=logical'])
  await node.query(NODE_SQL)
  return node
}

/** SQL of the document that leads to the servers of a test instead of 10.0.0.1 and so on. */
export function replaceHosts(sql: string, servers: readonly PostgresServer[]): string {
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
const STATEMENT_ARGUMENTS = { DELETE_ONE: '7', LIST: '7, 10', LIST_LARGE: '7, 10, 1000' }

const TABLE = { schema: 'public', resetsCommitSettings: false }

/** How often to run a statement: after five plans for their values, a connection may keep one for all. */
const EXECUTION_COUNT = 8

/** Runs each statement for an owner. Settles with the last plans of those that are planned for a partition. */
export async function explainStatements(client: ClientBase, owner: string): Promise<string[]> {
  await client.query(`PREPARE trial AS ${statements.CREATE_ONE.text(TABLE)}`)
  for (let id = 1; id <= EXECUTION_COUNT; id++) await client.query(`EXECUTE trial ('${owner}', ${-id}, 'fern', NULL)`)
  await client.query('DEALLOCATE trial')
  const plans: string[] = []
  for (const [name, values] of Object.entries(STATEMENT_ARGUMENTS)) {
    await client.query(`PREPARE trial AS ${statements[name as keyof typeof STATEMENT_ARGUMENTS].text(TABLE)}`)
    let plan = ''
    for (let times = 0; times < EXECUTION_COUNT; times++)
      plan = await explain(client, `EXECUTE trial ('${owner}', ${values})`)
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
