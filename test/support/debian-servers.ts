import { execFile } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Client } from 'pg'
import { startChild, type CleanupScope } from './child-process.ts'
import { findFreePort } from './find-free-port.ts'
import { waitUntilListening } from './wait-until-listening.ts'
import { runHaproxy } from './proxies.ts'
import { listen, getPort } from './service.ts'
import { skipUnlessNode24 } from './skip-reasons.ts'
import { waitUntil } from './wait-until.ts'

const POSTGRES = '/usr/lib/postgresql'
const postgresBin = existsSync(POSTGRES) ? join(POSTGRES, readdirSync(POSTGRES).sort().at(-1)!, 'bin') : ''
const PGBOUNCER = '/usr/sbin/pgbouncer'
const HAPROXY = '/usr/sbin/haproxy'

/** Why tests that start their own database servers are skipped; with TEST_REQUIRE_ALL=1, they fail instead. */
export const skipWithoutDebianServers: string | false =
  skipUnlessNode24 ||
  (![join(postgresBin, 'postgres'), PGBOUNCER, HAPROXY].every(existsSync) &&
    'install the Debian packages postgresql, pgbouncer and haproxy')
if (skipWithoutDebianServers !== false && skipUnlessNode24 === false && process.env['TEST_REQUIRE_ALL'] === '1')
  throw new Error(skipWithoutDebianServers)

/** The servers refuse to run as root. Root runs them as the user that the Debian packages create. */
const serverUser =
  skipWithoutDebianServers === false && process.getuid?.() === 0 ? getOwner('/var/lib/postgresql') : undefined

function getOwner(path: string): { uid: number; gid: number } {
  const { uid, gid } = statSync(path)
  return { uid, gid }
}

/** Runs a command and returns its stdout. */
async function runCommand(file: string, args: readonly string[], asServerUser = false): Promise<string> {
  const options = asServerUser ? { ...serverUser, cwd: '/' } : {}
  const { stdout } = await promisify(execFile)(file, args, options)
  return stdout
}

/**
 * Creates a folder that belongs to the servers' user and is removed after the test.
 * @param beforeRemoval stops the processes that use the folder
 */
function createServerDirectory(t: CleanupScope, beforeRemoval?: () => Promise<void>): string {
  const folder = mkdtempSync(join(tmpdir(), 'plant-store-'))
  if (serverUser !== undefined) chownSync(folder, serverUser.uid, serverUser.gid)
  t.after(async () => {
    await beforeRemoval?.()
    rmSync(folder, { recursive: true, force: true })
  })
  return folder
}

/** A Postgres server that is stopped after the test. */
export class PostgresServer {
  readonly port: number
  readonly folder: string

  private constructor(t: CleanupScope, port: number) {
    this.port = port
    this.folder = createServerDirectory(t, () => this.stop('immediate').catch(() => undefined))
  }

  static async start(t: CleanupScope): Promise<PostgresServer> {
    const server = new PostgresServer(t, await findFreePort())
    const { data } = server
    const args = ['--auth=trust', '--username=plants', '--no-sync', '--encoding=UTF8', '--locale=C']
    await runCommand(join(postgresBin, 'initdb'), [...args, `--pgdata=${data}`], true)
    for (const file of ['localhost.crt', 'localhost.key']) {
      copyFileSync(new URL(file, import.meta.url), join(data, file))
      chmodSync(join(data, file), 0o600)
      if (serverUser !== undefined) chownSync(join(data, file), serverUser.uid, serverUser.gid)
    }
    await server.#configureAndLaunch()
    return server
  }

  /** Starts a streaming standby of a primary. @param name the `application_name` of the standby */
  static async startStandby(t: CleanupScope, primary: PostgresServer, name: string): Promise<PostgresServer> {
    const server = new PostgresServer(t, await findFreePort())
    const source = `host=127.0.0.1 port=${primary.port} user=plants application_name=${name}`
    const args = [`--pgdata=${server.data}`, '--checkpoint=fast', '--write-recovery-conf', `--dbname=${source}`]
    await runCommand(join(postgresBin, 'pg_basebackup'), args, true)
    await server.#configureAndLaunch()
    return server
  }

  get data(): string {
    return join(this.folder, 'data')
  }

  get url(): string {
    return `postgres://plants@127.0.0.1:${this.port}/postgres`
  }

  async #configureAndLaunch(): Promise<void> {
    const own = [`port=${this.port}`, `unix_socket_directories='${this.folder}'`, `listen_addresses='127.0.0.1'`]
    const lines = ['fsync=off', 'wal_log_hints=on', 'wal_keep_size=256MB', 'max_connections=100', ...own]
    appendFileSync(join(this.data, 'postgresql.auto.conf'), `${lines.join('\n')}\n`)
    await this.launch()
  }

  /** Changes a setting of the running server. */
  async alterSystem(name: string, value: string): Promise<void> {
    await this.query(`ALTER SYSTEM SET ${name} = '${value}'`)
    await this.runPgCtl('reload')
  }

  async launch(): Promise<void> {
    await this.runPgCtl('start', '--wait', `--log=${this.folder}/log`)
  }

  async stop(mode: 'fast' | 'immediate'): Promise<void> {
    await this.runPgCtl('stop', `--mode=${mode}`)
  }

  async runPgCtl(command: string, ...args: readonly string[]): Promise<void> {
    await runCommand(join(postgresBin, 'pg_ctl'), [command, `--pgdata=${this.data}`, '--silent', ...args], true)
  }

  query<R extends object>(text: string): Promise<R[]> {
    return query(this.url, text)
  }

  /** Waits until a query returns at least one row. */
  async waitForRows(text: string): Promise<void> {
    await waitUntil(async () => (await this.query(text)).length > 0, 20)
  }
}

/** Runs a single query on a new connection. */
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

/** Starts Debian's PgBouncer in transaction mode in front of a server. Returns its port. */
export async function startPgbouncer(t: CleanupScope, server: PostgresServer, poolSize = 10): Promise<number> {
  const [folder, port] = [createServerDirectory(t), await findFreePort()]
  const file = join(folder, 'pgbouncer.ini')
  const lines = [
    '[databases]',
    `postgres = host=127.0.0.1 port=${server.port} user=plants`,
    '[pgbouncer]',
    `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
    `auth_type = any\npool_mode = transaction\ndefault_pool_size = ${poolSize}`,
  ]
  writeFileSync(file, lines.join('\n'))
  startChild(t, PGBOUNCER, ['--quiet', file], { ...serverUser, cwd: '/', stdio: 'ignore' })
  await waitUntilListening(port)
  return port
}

/**
 * Starts HAProxy in front of several servers. It forwards connections to the primary, which it finds with Patroni's
 * health check, and closes the connections to a server that is no longer the primary. Returns its port.
 */
export async function startPrimaryProxy(t: CleanupScope, servers: readonly PostgresServer[]): Promise<number> {
  const port = await findFreePort()
  const checks = await Promise.all(servers.map((server) => serveHealthChecks(t, server)))
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

/** Serves Patroni's health check, which distinguishes a primary from a standby, for a server. Returns its port. */
async function serveHealthChecks(t: CleanupScope, server: PostgresServer): Promise<number> {
  const checks = createHttpServer((_, response) => {
    void server
      .query<{ isStandby: boolean }>('SELECT pg_is_in_recovery() AS "isStandby"')
      .then(([row]) => !row!.isStandby)
      .catch(() => false)
      .then((isPrimary) => response.writeHead(isPrimary ? 200 : 503).end())
  })
  await listen(checks)
  t.after(() => checks.close())
  return getPort(checks)
}
