import { mkdtemp, rm } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { schema } from '../src/stores/postgres/postgres-store.ts'

/** A kind of database that can store the plants for a case. */
export interface Database {
  /** The reason why the database can't be used here; undefined if it can. */
  readonly unavailableReason: string | undefined
  /**
   * Creates an empty database.
   * @param index a number that is unique among the databases that exist at the same time
   */
  create(index: number): Promise<TemporaryDatabase>
}

export interface TemporaryDatabase {
  /** The path or URL of the database. */
  readonly location: string
  remove(): Promise<void>
}

export const SQLITE: Database = {
  unavailableReason: isBuiltin('node:sqlite') ? undefined : `Node ${process.version} doesn't have node:sqlite`,

  async create() {
    const directory = await mkdtemp(join(tmpdir(), 'plant-store-bench-'))
    return { location: join(directory, 'plants.db'), remove: () => rm(directory, { recursive: true }) }
  },
}

const postgresUrl = process.env['TEST_POSTGRES_URL']

export const POSTGRES: Database = {
  unavailableReason: postgresUrl === undefined ? 'TEST_POSTGRES_URL is not set' : undefined,

  async create(index) {
    const name = `plant_store_bench_${index}`
    const location = new URL(postgresUrl ?? '')
    location.searchParams.set('options', `-c search_path=${name}`)
    const url = location.href
    // An earlier run that was aborted might have left its schema behind.
    await execute(url, `DROP SCHEMA IF EXISTS ${name} CASCADE; CREATE SCHEMA ${name}; ${schema}`)
    return { location: url, remove: () => execute(url, `DROP SCHEMA ${name} CASCADE`) }
  },
}

async function execute(connectionString: string, statements: string): Promise<void> {
  const client = new pg.Client({ connectionString })
  await client.connect()
  try {
    await client.query('SET client_min_messages = warning')
    await client.query(statements)
  } finally {
    await client.end()
  }
}
