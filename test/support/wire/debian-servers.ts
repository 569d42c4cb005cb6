import { execFile, type ChildProcess } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  closeSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { startChild, type Scope } from '../child.ts'
import { freePort } from './free-port.ts'
import { listening } from './listening.ts'
import { runHaproxy } from './proxies.ts'
import { listen, portOf } from './service.ts'
import { isRunElsewhere } from '../requirements.ts'

const POSTGRES = '/usr/lib/postgresql'
export const bin = existsSync(POSTGRES) ? join(POSTGRES, readdirSync(POSTGRES).sort().at(-1)!, 'bin') : ''
const PGBOUNCER = '/usr/sbin/pgbouncer'
const HAPROXY = '/usr/sbin/haproxy'
const PGPOOL = '/usr/sbin/pgpool'

/** Why a test is skipped that starts servers of its own. Where it must not be, it fails instead. */
export const needsDebian: string | false =
  isRunElsewhere ||
  (![join(bin, 'postgres'), PGBOUNCER, HAPROXY].every(existsSync) &&
    'install postgresql, pgbouncer and haproxy as Debian has them')
if (needsDebian !== false && isRunElsewhere === false && process.env['TEST_REQUIRE_ALL'] === '1')
  throw new Error(needsDebian)

/** The servers refuse to run as root, so they get the user that comes with the packages. */
export const user = needsDebian === false && process.getuid?.() === 0 ? ownerOf('/var/lib/postgresql') : undefined

function ownerOf(path: string): { uid: number; gid: number } {
  const { uid, gid } = statSync(path)
  return { uid, gid }
}

/** Settles with what a command prints. */
export async function run(file: string, args: readonly string[], asServer = false): Promise<string> {
  const options = asServer ? { ...user, cwd: '/' } : {}
  const { stdout } = await promisify(execFile)(file, args, options)
  return stdout
}

/**
 * A folder of the servers' user, removed with the test.
 * @param leave ends whoever needs it
 */
export function makeFolder(t: Scope, leave?: () => Promise<void>): string {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-'))
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  t.after(async () => {
    await leave?.()
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

/**
 * A server in the foreground, killed with the test.
 * @param home its home, where it logs, if it needs one
 */
export function startProcess(t: Scope, file: string, args: readonly string[], home?: string): ChildProcess {
  const output = home === undefined ? 'ignore' : openSync(join(home, 'log'), 'a')
  const env = { PATH: process.env['PATH'], HOME: home }
  const child = startChild(t, file, args, { ...user, cwd: '/', env, stdio: ['ignore', output, output] })
  if (typeof output === 'number') closeSync(output)
  return child
}

/** The processes of the server with these data; the first has started the others. */
export function processesOf(data: string): number[] {
  try {
    const pid = Number(readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')[0])
    return [pid, ...readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)]
  } catch {
    return []
  }
}

export function signalAll(pids: readonly number[], signal: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, signal)
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** A PostgreSQL server, stopped with the test. */
export class PostgresServer {
  readonly port: number
  readonly folder: string

  private constructor(t: Scope, port: number) {
    this.port = port
    this.folder = makeFolder(t, () => this.stop('immediate').catch(() => undefined))
  }

  /** @param settings lines of its configuration */
  static async start(t: Scope, settings: readonly string[] = [], encoding = 'UTF8'): Promise<PostgresServer> {
    const server = new PostgresServer(t, await freePort())
    const { data } = server
    const args = ['--auth=trust', '--username=plants', '--no-sync', `--encoding=${encoding}`, '--locale=C']
    await run(join(bin, 'initdb'), [...args, `--pgdata=${data}`], true)
    for (const file of ['localhost.crt', 'localhost.key']) {
      copyFileSync(new URL(`tls/${file}`, import.meta.url), join(data, file))
      chmodSync(join(data, file), 0o600)
      if (user !== undefined) chownSync(join(data, file), user.uid, user.gid)
    }
    await server.#begin(settings)
    return server
  }

  /** Copies a server and follows it, as a standby of that name. */
  static async startStandby(t: Scope, primary: PostgresServer, name: string): Promise<PostgresServer> {
    const server = new PostgresServer(t, await freePort())
    const source = `host=127.0.0.1 port=${primary.port} user=plants application_name=${name}`
    const args = [`--pgdata=${server.data}`, '--checkpoint=fast', '--write-recovery-conf', `--dbname=${source}`]
    await run(join(bin, 'pg_basebackup'), args, true)
    await server.#begin()
    return server
  }

  get data(): string {
    return join(this.folder, 'data')
  }

  get url(): string {
    return `postgres://plants@127.0.0.1:${this.port}/postgres`
  }

  async #begin(settings: readonly string[] = []): Promise<void> {
    // The last setting of a name holds.
    const own = [`port=${this.port}`, `unix_socket_directories='${this.folder}'`, `listen_addresses='127.0.0.1'`]
    const lines = ['fsync=off', 'wal_log_hints=on', 'wal_keep_size=256MB', 'max_connections=100', ...own, ...settings]
    appendFileSync(join(this.data, 'postgresql.auto.conf'), `${lines.join('\n')}\n`)
    await this.begin()
  }

  /** Changes a setting while it runs. */
  async set(name: string, value: string): Promise<void> {
    await this.query(`ALTER SYSTEM SET ${name} = '${value}'`)
    await this.control('reload')
  }

  /** Comes back, after it died as a primary, as a standby of the one that took its place. */
  async follow(primary: PostgresServer): Promise<void> {
    // What it did not pass on before it died must go.
    await this.begin()
    await this.stop('fast')
    const source = `host=127.0.0.1 port=${primary.port} user=plants dbname=postgres`
    const settings = readFileSync(join(this.data, 'postgresql.auto.conf'), 'utf8')
    await run(join(bin, 'pg_rewind'), [`--target-pgdata=${this.data}`, `--source-server=${source}`], true)
    const own = `synchronous_standby_names=''\nprimary_conninfo='${source}'\n`
    writeFileSync(join(this.data, 'postgresql.auto.conf'), settings + own)
    writeFileSync(join(this.data, 'standby.signal'), '')
    if (user !== undefined) chownSync(join(this.data, 'standby.signal'), user.uid, user.gid)
    await this.begin()
  }

  async begin(): Promise<void> {
    await this.control('start', '--wait', `--log=${this.folder}/log`)
  }

  async stop(mode: 'fast' | 'immediate'): Promise<void> {
    await this.control('stop', `--mode=${mode}`)
  }

  /** Sends a signal to all its processes. */
  signal(signal: NodeJS.Signals): void {
    signalAll(processesOf(this.data), signal)
  }

  async control(command: string, ...args: readonly string[]): Promise<void> {
    await run(join(bin, 'pg_ctl'), [command, `--pgdata=${this.data}`, '--silent', ...args], true)
  }

  /** A session that ends with the test at the latest. */
  async connect(t: Scope): Promise<Client> {
    const client = new Client({ connectionString: this.url })
    client.on('error', () => undefined)
    await client.connect()
    t.after(() => client.end())
    return client
  }

  query<R extends object>(text: string): Promise<R[]> {
    return query(this.url, text)
  }

  /** Settles once a query finds something. */
  async until(text: string): Promise<void> {
    while ((await this.query(text)).length === 0) await sleep(20)
  }
}

/** Settles with what a server answers to one query. */
export async function query<R extends object>(connectionString: string, text: string): Promise<R[]> {
  const client = new Client({ connectionString, connectionTimeoutMillis: 10_000 })
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<R>(text)).rows
  } finally {
    await client.end()
  }
}

/** Settles once a server answers behind what listens on a port. */
export async function answering(port: number): Promise<void> {
  try {
    await query(`postgres://plants@127.0.0.1:${port}/postgres`, 'SELECT 1')
  } catch {
    await sleep(20)
    await answering(port)
  }
}

/** PgBouncer as Debian has it, in transaction mode, in front of a server. Returns its port. */
export async function startPgbouncer(t: Scope, server: PostgresServer, poolSize = 10): Promise<number> {
  const [folder, port] = [makeFolder(t), await freePort()]
  const file = join(folder, 'pgbouncer.ini')
  const lines = [
    '[databases]',
    `postgres = host=127.0.0.1 port=${server.port} user=plants`,
    '[pgbouncer]',
    `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
    `auth_type = any\npool_mode = transaction\ndefault_pool_size = ${poolSize}`,
  ]
  writeFileSync(file, lines.join('\n'))
  startProcess(t, PGBOUNCER, ['--quiet', file])
  await listening(port)
  return port
}

/** Why a test that starts Pgpool-II is skipped. */
export const needsPgpool: string | false = needsDebian || (!existsSync(PGPOOL) && 'install pgpool2 as Debian has it')
if (needsPgpool !== needsDebian && process.env['TEST_REQUIRE_ALL'] === '1') throw new Error(needsPgpool as string)

/**
 * Pgpool-II as Debian has it, in front of a primary and a standby, to which it sends all queries that it takes for reads.
 * Returns its port.
 */
export async function startPgpool(
  t: Scope,
  servers: readonly [primary: PostgresServer, standby: PostgresServer],
  settings: readonly string[] = [],
): Promise<number> {
  const [folder, port] = [makeFolder(t), await freePort()]
  const file = join(folder, 'pgpool.conf')
  const lines = [
    `backend_clustering_mode = 'streaming_replication'`,
    `listen_addresses = '127.0.0.1'\nport = ${port}\nunix_socket_directories = '${folder}'`,
    `pcp_listen_addresses = ''\npcp_port = ${await freePort()}\npcp_socket_dir = '${folder}'`,
    `pid_file_name = '${folder}/pid'\nlogdir = '${folder}'\nwork_dir = '${folder}'`,
    `num_init_children = 30\nload_balance_mode = on\nsr_check_user = 'plants'\nsr_check_period = 1`,
    ...servers.map(
      (server, index) =>
        `backend_hostname${index} = '127.0.0.1'\nbackend_port${index} = ${server.port}\nbackend_weight${index} = ${index}`,
    ),
    ...settings,
  ]
  writeFileSync(file, `${lines.join('\n')}\n`)
  startProcess(t, PGPOOL, ['-n', '-f', file, '-a', join(folder, 'hba'), '-F', join(folder, 'pcp')], folder)
  await listening(port)
  await answering(port)
  return port
}

/**
 * HAProxy in front of several servers. It leads to the one that takes writes, as it asks Patroni which one that is, and
 * ends the connections to a server that no longer does. Returns its port.
 */
export async function startHaproxy(t: Scope, servers: readonly PostgresServer[]): Promise<number> {
  const port = await freePort()
  const checks = await Promise.all(servers.map((server) => serveChecks(t, server)))
  const lines = [
    'defaults\n mode tcp\n retries 0\n timeout connect 1s\n timeout check 2s\n timeout client 1h\n timeout server 1h',
    `frontend plants\n bind 127.0.0.1:${port}\n default_backend postgres`,
    'backend postgres\n option httpchk GET /primary',
    ' default-server inter 200ms fall 2 rise 1 on-marked-down shutdown-sessions',
    ...servers.map(({ port }, index) => ` server s${index} 127.0.0.1:${port} check port ${checks[index]}`),
  ]
  await runHaproxy(t, port, lines.join('\n'))
  return port
}

/** Answers as Patroni does whether a server takes writes. Returns the port. */
async function serveChecks(t: Scope, server: PostgresServer): Promise<number> {
  const checks = createHttpServer((_, response) => {
    void server
      .query<{ isStandby: boolean }>('SELECT pg_is_in_recovery() AS "isStandby"')
      .then(([row]) => !row!.isStandby)
      .catch(() => false)
      .then((isPrimary) => response.writeHead(isPrimary ? 200 : 503).end())
  })
  await listen(checks)
  t.after(() => checks.close())
  return portOf(checks)
}

/**
 * Counts the sessions of the program, five times a second. Returns what stops that, and says how many were the most.
 * @param server is asked by a session of its own, and may be away
 */
export function countSessions(server: Pick<PostgresServer, 'query'>): () => Promise<number> {
  const stopping = new AbortController()
  async function count(most = 0): Promise<number> {
    if (stopping.signal.aborted) return most
    const sessions = "SELECT count(*)::int AS count FROM pg_stat_activity WHERE application_name = 'plant-store'"
    const rows = await server.query<{ count: number }>(sessions).catch(() => [])
    await sleep(200)
    return count(Math.max(most, rows[0]?.count ?? 0))
  }
  const counting = count()
  return () => {
    stopping.abort()
    return counting
  }
}
