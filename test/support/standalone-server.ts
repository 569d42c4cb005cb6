import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { digestToken } from '../../src/http/authentication.ts'
import { memoryStore, type Store } from '../../src/index.ts'
import { createServers } from '../../src/standalone/servers.ts'
import { readSettings } from '../../src/standalone/settings/settings.ts'
import './environment.js'
import { RawConnection } from './raw-connection.ts'
import { limitWait } from './wait-until.ts'

type Environment = Readonly<Record<string, string>>

/** What the started process inherits. */
export interface LaunchOptions {
  /** Shell commands to run before `exec`. */
  readonly prelude?: string
  /** Sockets that the process inherits as file descriptors 3, 4… */
  readonly sockets?: readonly object[]
}

/** The default token. Its owner is ada. */
export const TOKEN = 'YWRh'

const LISTENING_PREFIX = 'plant-store listening on '

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The server's main module, after the options of Node that it needs. run-tests.js bundles the server for Node 20. */
const SERVER = process.env['TEST_SERVER'] ? [process.env['TEST_SERVER']] : [...process.execArgv, 'src/server.ts']

/** Collects the lines of a stream. */
class LineReader {
  readonly lines: string[] = []
  readonly #events = new EventEmitter()
  #isEnded = false

  constructor(stream: Readable) {
    createInterface(stream)
      .on('line', (line) => {
        this.lines.push(line)
        this.#events.emit('change')
      })
      .on('close', () => {
        this.#isEnded = true
        this.#events.emit('change')
      })
  }

  /** Waits for the n-th matching line and returns it, or undefined if the stream ends first. */
  async waitForLine(isMatch: (line: string) => boolean, n = 1): Promise<string | undefined> {
    for (;;) {
      const line = this.lines.filter(isMatch)[n - 1]
      if (line !== undefined) return line
      if (this.#isEnded) return undefined
      await limitWait(once(this.#events, 'change'), () => `the server printed:\n${this.lines.join('\n')}`)
    }
  }
}

/** The standalone server in a child process. */
export class StandaloneServer {
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  readonly stdout: LineReader
  readonly stderr: LineReader
  /** Resolves with the exit status or the signal, once the process has exited and all its output has been read. */
  readonly exited: Promise<number | NodeJS.Signals>
  url = ''

  /** Of this process's own environment, the child inherits only what Node itself needs. */
  constructor(
    environment: Environment,
    args: readonly string[] = [],
    nodeArgs: readonly string[] = [],
    { prelude, sockets = [] }: LaunchOptions = {},
  ) {
    const { PATH, NODE_V8_COVERAGE, NODE_COMPILE_CACHE } = process.env
    const node = [process.execPath, ...nodeArgs, ...SERVER, ...args]
    const [command, ...rest] = prelude === undefined ? node : ['sh', '-c', `${prelude} && exec "$@"`, 'sh', ...node]
    this.child = spawn(command!, rest, {
      cwd: ROOT,
      env: { PATH, NODE_V8_COVERAGE, NODE_COMPILE_CACHE, ...environment },
      stdio: ['ignore', 'pipe', 'pipe', ...(sockets as Readable[])],
    }) as ChildProcessByStdio<null, Readable, Readable>
    this.stdout = new LineReader(this.child.stdout)
    this.stderr = new LineReader(this.child.stderr)
    this.exited = once(this.child, 'close').then(([status, signal]) => (status ?? signal) as number | NodeJS.Signals)
  }

  /** Like {@link startServer}, but the caller has to stop the process. */
  static async start(
    environment: Environment,
    nodeArgs: readonly string[] = [],
    launchOptions?: LaunchOptions,
  ): Promise<StandaloneServer> {
    const server = new StandaloneServer(withDefaults(environment), [], nodeArgs, launchOptions)
    await server.waitUntilServing()
    return server
  }

  /**
   * Waits until the server is listening.
   * @throws Error with the output on stderr if the process exits instead
   */
  async waitUntilServing(): Promise<void> {
    const line = await this.stdout.waitForLine((line) => line.startsWith(LISTENING_PREFIX))
    if (line === undefined) throw new Error(`The server did not start: ${this.stderr.lines.join('\n')}`)
    this.url = line.slice(LISTENING_PREFIX.length)
  }

  /** Stops the process without waiting for pending requests. Does nothing if it has already exited. */
  async stop(): Promise<void> {
    // The second signal ends the graceful shutdown. Unlike SIGKILL, it lets Node write its coverage data.
    this.child.kill('SIGTERM')
    this.child.kill('SIGINT')
    // `close` is only emitted once all output has been read, and a failed test may not have read it.
    this.child.stderr.resume()
    await this.exited
  }

  get port(): number {
    return Number(new URL(this.url).port)
  }

  /** Waits for the n-th log event with this name. */
  async waitForLogEvent(event: string, n = 1): Promise<Readonly<Record<string, unknown>>> {
    const line = await this.stderr.waitForLine((line) => line.includes(`"event":"${event}"`), n)
    if (line === undefined) throw new Error(`The server did not log "${event}": ${this.stderr.lines.join('\n')}`)
    return JSON.parse(line) as Record<string, unknown>
  }

  fetch(path: string, init: { method?: string; body?: string } = {}, token = TOKEN): Promise<Response> {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    return fetch(this.url + path, { ...init, headers })
  }

  connect(): Promise<RawConnection> {
    return RawConnection.open(this.url.startsWith('unix:') ? this.url.slice('unix:'.length) : this.port)
  }
}

/** Returns arguments that make Node run some code before the server. */
export function createImportFlags(code: string): string[] {
  return ['--import', `data:text/javascript,${encodeURIComponent(code)}`]
}

function withDefaults(environment: Environment): Environment {
  const tokens = 'PLANT_STORE_TOKENS_FILE' in environment ? {} : { PLANT_STORE_TOKENS: `ada:${TOKEN}` }
  const port = environment['HOST']?.startsWith('/') ? {} : { PORT: '0' }
  // Without a build, there is no web UI.
  return { ...port, ...tokens, PLANT_STORE_WEB_UI: '0', ...environment }
}

/** Starts the standalone server on a free port and waits until it is listening. It is stopped after the test. */
export async function startServer(
  t: TestContext,
  environment: Environment = {},
  launchOptions?: LaunchOptions,
): Promise<StandaloneServer> {
  const server = new StandaloneServer(withDefaults(environment), [], [], launchOptions)
  t.after(() => server.stop())
  await server.waitUntilServing()
  return server
}

/** The token of {@link serveInProcess}, of the owner ada. */
export const WRITER_TOKEN = 'writer'

/** Starts the servers of the standalone server in this process, and returns their URLs. They're closed after the test. */
export async function serveInProcess(
  t: TestContext,
  environment: Environment = {},
  store: Store = memoryStore(),
): Promise<{ readonly url: string; readonly admin: string; readonly port: number }> {
  const settings = await readSettings(withDefaults({ PLANT_STORE_TOKENS: `ada:${WRITER_TOKEN}`, ...environment }))
  const authenticate = (token: string) => settings.tokens!.current().get(digestToken(token))
  const { service, admin } = createServers(settings, { store, authenticate, isDraining: () => false })
  const ports: number[] = []
  for (const server of [service.server, admin?.server]) {
    if (server === undefined) continue
    await once(server.listen(0, '127.0.0.1'), 'listening')
    ports.push((server.address() as AddressInfo).port)
    t.after(() => {
      server.close()
      server.closeAllConnections()
    })
  }
  const [port, adminPort] = ports
  return { url: `http://127.0.0.1:${port}`, admin: `http://127.0.0.1:${adminPort}`, port: port! }
}
