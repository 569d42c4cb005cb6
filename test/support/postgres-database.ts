import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { setFlagsFromString } from 'node:v8'
import { PGlite } from '@electric-sql/pglite'
import { PGLiteSocketServer } from '@electric-sql/pglite-socket'
import { Client, Pool, type PoolConfig } from 'pg'
import type { CleanupScope } from './child-process.ts'
import { skipWithoutPostgresUrl } from './skip-reasons.ts'
import { openTcpProxy, type TcpProxy } from './tcp-proxy.ts'

/** The length of a SHA-256 digest in bytes. */
const DIGEST_LENGTH = 32

const serverUrl = process.env['TEST_POSTGRES_URL']

/** Why to skip a test that needs several sessions, or closes one; false to run it. PGlite has only one session. */
export const skipWithoutPostgres: string | false = skipWithoutPostgresUrl

if (skipWithoutPostgres !== false && process.env['TEST_REQUIRE_ALL'] === '1') throw new Error(skipWithoutPostgres)

/** The connection parameters of a database. */
type Config = Readonly<Record<'host' | 'user' | 'password' | 'database', string>> & { readonly port: number }

interface TestDatabase {
  readonly config: Config
  readonly url: string
  /**
   * Opens a connection pool, which is ended with the database at the latest. PGlite supports only one pool at a time.
   */
  openPool(config?: PoolConfig): Pool
}

/**
 * A database that is being opened: its connection parameters, more options for its pools, and a function to drop it.
 */
type OpeningDatabase = Promise<[config: Config, poolConfig: PoolConfig, drop: () => Promise<unknown>]>

/**
 * Creates a database on the server of TEST_POSTGRES_URL, or with PGlite in this process if that isn't set. It's dropped
 * when the test ends.
 */
export async function openDatabase(t: CleanupScope): Promise<TestDatabase> {
  const [config, poolConfig, drop] = await (serverUrl === undefined ? startPglite() : createDatabase())
  const pools: Pool[] = []
  t.after(async () => {
    // Sessions of an ended pool may still be open. Dropping the database closes them, which emits errors.
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

/**
 * Creates a database behind a TCP proxy, which the test can close or block. The URL contains the port of the proxy.
 */
export async function openProxiedDatabase(
  t: CleanupScope,
): Promise<{ database: TestDatabase; proxy: TcpProxy; url: string }> {
  const database = await openDatabase(t)
  const proxy = await openTcpProxy(database.config)
  t.after(() => proxy.close())
  return { database, proxy, url: formatUrl({ ...database.config, host: '127.0.0.1', port: proxy.port }) }
}

/** Executes SQL on the server of TEST_POSTGRES_URL, outside the test databases. Returns the client, which is closed. */
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

/** Creates a database from a cached copy of its data directory, because running initdb takes seconds. */
async function createPglite(): Promise<PGlite> {
  // Optimizing the machine code of PostgreSQL takes longer than the statements of most test files.
  setFlagsFromString('--liftoff-only')
  const modules = new URL('../../node_modules/', import.meta.url)
  const manifest = await readFile(new URL('@electric-sql/pglite/package.json', modules), 'utf8')
  const { version } = JSON.parse(manifest) as { version: string }
  const cacheDirectory = new URL('.cache/pglite/', modules)
  const cacheFile = new URL(`${version}.tar`, cacheDirectory)
  // The file starts with a digest, because PGlite crashes the process if it's damaged.
  const cached = await readFile(cacheFile).catch(() => Buffer.alloc(0))
  const [digest, archive] = [cached.subarray(0, DIGEST_LENGTH), cached.subarray(DIGEST_LENGTH)]
  if (digest.equals(hash(archive))) return PGlite.create({ loadDataDir: new Blob([archive]) })
  const db = await PGlite.create()
  const newArchive = Buffer.from(await (await db.dumpDataDir('none')).arrayBuffer())
  await mkdir(cacheDirectory, { recursive: true })
  // Written to a temporary file and renamed, because another process could be reading the cache file.
  const temporary = new URL(`${cacheFile.href}.${process.pid}`)
  await writeFile(temporary, [hash(newArchive), newArchive])
  await rename(temporary, cacheFile)
  return db
}

function hash(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest()
}

/** The tests of a process share a database, because creating one takes a second. */
let sharedPglite: Promise<PGlite> | undefined

/** Removes what a test has created. */
const CLEAN_UP = `DEALLOCATE ALL; RESET ALL;
  DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_|^information_schema$' LOOP
      EXECUTE format('DROP SCHEMA %I CASCADE', name);
    END LOOP;
  END $$;
  CREATE SCHEMA public`

async function startPglite(): OpeningDatabase {
  const db = await (sharedPglite ??= createPglite())
  const server = new PGLiteSocketServer({ db, host: '127.0.0.1', port: 0, maxConnections: 100 })
  await server.start()
  const port = Number(server.getServerConn().split(':').at(-1))
  return [
    { host: '127.0.0.1', port, user: 'postgres', password: '', database: 'postgres' },
    // All connections share a session, so a new connection must remove the prepared statements of the previous one.
    { max: 1, verify: (client, done) => client.query('DEALLOCATE ALL', done) },
    () => server.stop().then(() => db.exec(CLEAN_UP)),
  ]
}
