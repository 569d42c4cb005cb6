import { randomBytes } from 'node:crypto'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import { Client, Pool, type PoolConfig } from 'pg'
import type { CleanupScope } from '../child-process.ts'
import { openTcpProxy, type TcpProxy } from '../wire/tcp-proxy.ts'

const serverUrl = process.env['TEST_POSTGRES_URL']

/** Why a test is skipped that takes several sessions or the end of one: what stands in for a server has just one. */
export const skipWithoutPostgres: string | false =
  serverUrl === undefined && 'set TEST_POSTGRES_URL to a PostgreSQL server'

if (skipWithoutPostgres !== false && process.env['TEST_REQUIRE_ALL'] === '1') throw new Error(skipWithoutPostgres)

/** How to connect to a database. */
type Config = Readonly<Record<'host' | 'user' | 'password' | 'database', string>> & { readonly port: number }

interface TestDatabase {
  readonly config: Config
  readonly url: string
  /** A pool of connections, ended with the database at the latest. In this process, the only one at a time. */
  openPool(config?: PoolConfig): Pool
}

/** What opens a database: how to connect to it, what its pools need beside that, and what drops it. */
type OpeningDatabase = Promise<[config: Config, poolConfig: PoolConfig, drop: () => Promise<unknown>]>

/** Opens a database, on the server that TEST_POSTGRES_URL names, else in this process. It goes with the test. */
export async function openDatabase(t: CleanupScope): Promise<TestDatabase> {
  const [config, poolConfig, drop] = await (serverUrl === undefined ? startPglite() : createDatabase())
  const pools: Pool[] = []
  t.after(async () => {
    // A pool may have ended before its sessions have, which are then ended with the database.
    for (const pool of pools) pool.on('error', () => undefined)
    await Promise.all(pools.filter((pool) => !pool.ending).map((pool) => pool.end()))
    await drop()
  })
  function openPool(overrides?: PoolConfig) {
    const pool = new Pool({ connectionTimeoutMillis: 10_000, ...config, ...poolConfig, ...overrides })
    pools.push(pool)
    return pool
  }
  return { config, url: formatUrl(config), openPool }
}

function formatUrl({ host, port, user, password, database }: Config) {
  return `postgres://${user}:${encodeURIComponent(password)}@${host}:${port}/${database}`
}

/** Opens a database that ends with the test, and a way to it that can be closed, cut and blocked; the URL takes it. */
export async function openProxiedDatabase(
  t: CleanupScope,
): Promise<{ database: TestDatabase; proxy: TcpProxy; url: string }> {
  const database = await openDatabase(t)
  const proxy = await openTcpProxy(database.config)
  t.after(() => proxy.close())
  return { database, proxy, url: formatUrl({ ...database.config, host: '127.0.0.1', port: proxy.port }) }
}

/** Has the server that TEST_POSTGRES_URL names do what takes no database. */
export async function runAdminSql(sql: string): Promise<Client> {
  const client = new Client({ connectionString: serverUrl })
  await client.connect()
  await client.query(sql)
  await client.end()
  return client
}

async function createDatabase(): OpeningDatabase {
  const database = `plant_store_test_${randomBytes(6).toString('hex')}`
  const { host, port, user = '', password = '' } = await runAdminSql(`CREATE DATABASE ${database}`)
  const drop = () => runAdminSql(`DROP DATABASE ${database} WITH (FORCE)`)
  return [{ host, port, user, password, database }, {}, drop]
}

async function startPglite(): OpeningDatabase {
  const db = await PGlite.create()
  const server = new PGLiteSocketServer({ db, host: '127.0.0.1', port: 0, maxConnections: 100 })
  await server.start()
  const port = Number(server.getServerConn().split(':').at(-1))
  return [
    { host: '127.0.0.1', port, user: 'postgres', password: '', database: 'postgres' },
    // All its connections share a session, so that a new one finds the statements of the last one prepared.
    { max: 1, verify: (client, done) => client.query('DEALLOCATE ALL', done) },
    () => server.stop().finally(() => db.close()),
  ]
}
