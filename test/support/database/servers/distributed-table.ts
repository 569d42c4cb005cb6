import type { ClientBase } from 'pg'
import type { Store } from '../../../../src/plants/store.ts'
import * as statements from '../../../../src/stores/postgres/statements.ts'
import type { CleanupScope } from '../../child-process.ts'
import { findCodeBlocks, findPrograms, readDocument } from '../../package/documents.ts'
import { PostgresServer } from '../../wire/debian-servers.ts'

const DOCUMENT = readDocument('docs/scaling.md')

/** The sharding example of the document. */
const [SHARDING_EXAMPLE] = findPrograms(DOCUMENT)
export const { spread } = (await import(`data:text/javascript,${encodeURIComponent(SHARDING_EXAMPLE!.code)}`)) as {
  readonly spread: (stores: readonly Store[]) => Store
}

/** Returns the SQL examples under a heading of the document. */
export function findSqlBlocks(heading: string): string[] {
  return findCodeBlocks(DOCUMENT, 'sql')
    .filter((block) => block.heading === heading)
    .map(({ code }) => code)
}

const [NODE_SQL = '', COORDINATOR_SQL = ''] = findSqlBlocks('Partitions on other servers')

/** A table whose partitions are on two other servers, created as in docs/scaling.md. */
export interface DistributedTable {
  /** The server that the service uses. */
  coordinator: PostgresServer
  /** The servers of the even and of the odd partitions. */
  nodes: PostgresServer[]
  /** For each server, an owner whose plants it stores. */
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

/** Starts a server with the tables of the partitions. Logical replication is enabled, to move partitions. */
export async function startNode(t: CleanupScope): Promise<PostgresServer> {
  const node = await PostgresServer.start(t, ['wal_level=logical'])
  await node.query(NODE_SQL)
  return node
}

/** Replaces the addresses in an SQL example (10.0.0.1, …) with the addresses of test servers. */
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

/** The arguments of the statements that concern one owner, except CREATE_ONE. */
const STATEMENT_ARGUMENTS = { DELETE_ONE: '7', LIST: '7, 10', LIST_LARGE: '7, 10, 1000' }

const TABLE = { schema: 'public', resetsCommitSettings: false }

/** How often to execute a statement. After five custom plans, PostgreSQL may switch to a generic plan. */
const EXECUTION_COUNT = 8

/** Executes each statement for an owner, and returns the last plans, except the plan of CREATE_ONE. */
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

/** Executes a statement and returns its query plan. */
export async function explain(client: Pick<ClientBase, 'query'>, statement: string): Promise<string> {
  const { rows } = await client.query<{ 'QUERY PLAN': string }>(`EXPLAIN (ANALYZE, VERBOSE) ${statement}`)
  return rows.map((row) => row['QUERY PLAN']).join('\n')
}
