import { ascendingId, type Case, createPlantsCase, deletePlantsCase, listPlantsCase } from './cases.ts'
import {
  FASTIFY_PG,
  PLANT_STORE_MEMORY,
  POSTGRES_STORE,
  POSTGRES_STORE_ONE_BY_ONE,
  SQLITE_STORE,
  SQLITE_STORE_ONE_BY_ONE,
  SQLITE_STORE_WRITING,
} from './contestants.ts'
import { POSTGRES, SQLITE } from './databases.ts'

const onSqlite = {
  database: SQLITE,
  contestants: [SQLITE_STORE_ONE_BY_ONE, SQLITE_STORE, PLANT_STORE_MEMORY],
}

const onPostgres = { database: POSTGRES, contestants: [FASTIFY_PG, POSTGRES_STORE] }
const writingToPostgres = { database: POSTGRES, contestants: [FASTIFY_PG, POSTGRES_STORE_ONE_BY_ONE, POSTGRES_STORE] }

/** Runs a case on one connection, which waits for each response before it sends the next request. */
function onOneConnection(theCase: Case): Case {
  return { ...theCase, name: `${theCase.name}-alone`, connections: 1 }
}

const createOnSqlite: Case = { ...createPlantsCase('create-sqlite', ascendingId), ...onSqlite }
const createOnPostgres: Case = { ...createPlantsCase('create-postgres', ascendingId), ...writingToPostgres }
const listOnPostgres: Case = { ...listPlantsCase(10), name: 'list-10-postgres', ...onPostgres }
const deleteOnPostgres: Case = { ...deletePlantsCase('delete-postgres', ascendingId, 20_000), ...writingToPostgres }

/** The cases with a database, which run only if `--case` names them. */
export const STORE_CASES: readonly Case[] = [
  createOnSqlite,
  onOneConnection(createOnSqlite),
  { ...listPlantsCase(10), name: 'list-10-sqlite', ...onSqlite, contestants: [SQLITE_STORE, SQLITE_STORE_WRITING] },
  createOnPostgres,
  onOneConnection(createOnPostgres),
  listOnPostgres,
  onOneConnection(listOnPostgres),
  deleteOnPostgres,
  onOneConnection({ ...deleteOnPostgres, seedCount: { perSecond: 5000 } }),
]
