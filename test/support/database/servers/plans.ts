import type { ClientBase } from 'pg'
import * as statements from '../../../../src/stores/postgres/statements.ts'

/** The statements that a store sends for one owner if its groups have one plant, but that which creates it. */
const OTHERS = [
  ['DELETE_ONE', '7'],
  ['LIST', '7, 10'],
  ['LIST_LARGE', '7, 10, 1000'],
] as const

/** How often to run a statement: after five plans for their values, a connection may keep one for all. */
const TIMES = 8

/** Runs each statement for an owner. Settles with the last plans of those that are planned for a partition. */
export async function plansOf(client: ClientBase, owner: string): Promise<string[]> {
  await client.query(`PREPARE trial AS ${statements.CREATE_ONE.text}`)
  for (let id = 1; id <= TIMES; id++) await client.query(`EXECUTE trial ('${owner}', ${-id}, 'fern', NULL)`)
  await client.query('DEALLOCATE trial')
  const plans: string[] = []
  for (const [name, values] of OTHERS) {
    await client.query(`PREPARE trial AS ${statements[name].text}`)
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
