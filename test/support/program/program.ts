import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import type { TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { RawConnection } from '../wire/raw-connection.ts'

type Environment = Readonly<Record<string, string>>

/** What a process has from the one that starts it. */
export interface LaunchOptions {
  /** What a shell does before it becomes the program. */
  readonly prelude?: string
  /** Sockets that it gets as descriptors, from 3 on. */
  readonly sockets?: readonly object[]
}

/** The token of the owner ada, unless a test asks for others. */
export const TOKEN = 'YWRh'

/** The id of a request whose client has sent none. */
export const GENERATED_REQUEST_ID = /^[\da-f]{16}-\d+$/

const LISTENING_PREFIX = 'plant-store listening on '

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))

/** The lines that a stream has brought so far. */
class LineReader {
  readonly lines: string[] = []
  readonly #events = new EventEmitter()
  #isEnded = false

  constructor(stream: Readable) {
    createInterface(stream)
      .on('line', (line) => {
        this.lines.push(line)
        this.#events.emit('news')
      })
      .on('close', () => {
        this.#isEnded = true
        this.#events.emit('news')
      })
  }

  /** Settles with the n-th line that matches, come or to come; undefined if there is none. */
  async waitForLine(isMatch: (line: string) => boolean, n = 1): Promise<string | undefined> {
    for (;;) {
      const line = this.lines.filter(isMatch)[n - 1]
      if (line !== undefined) return line
      if (this.#isEnded) return undefined
      await once(this.#events, 'news')
    }
  }
}

/** The standalone program as a process of its own. */
export class Program {
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  readonly stdout: LineReader
  readonly stderr: LineReader
  /** Settles with the exit status, or the signal, once the process has ended and all its output is here. */
  readonly exited: Promise<number | NodeJS.Signals>
  url = ''

  /** With an environment that holds nothing of the test's own. */
  constructor(
    environment: Environment,
    args: readonly string[] = [],
    nodeArgs: readonly string[] = [],
    { prelude, sockets = [] }: LaunchOptions = {},
  ) {
    const { PATH, NODE_V8_COVERAGE, NODE_COMPILE_CACHE } = process.env
    const node = [process.execPath, ...process.execArgv, ...nodeArgs, 'src/server.ts', ...args]
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

  /** Starts the program as {@link startProgram} does; whoever calls this ends it. */
  static async start(
    environment: Environment,
    nodeArgs: readonly string[] = [],
    launchOptions?: LaunchOptions,
  ): Promise<Program> {
    const program = new Program(withDefaults(environment), [], nodeArgs, launchOptions)
    await program.waitUntilServing()
    return program
  }

  /**
   * Settles once it serves.
   * @throws Error that shows what the program said if it ends instead
   */
  async waitUntilServing(): Promise<void> {
    const line = await this.stdout.waitForLine((line) => line.startsWith(LISTENING_PREFIX))
    if (line === undefined) throw new Error(`The program did not start: ${this.stderr.lines.join('\n')}`)
    this.url = line.slice(LISTENING_PREFIX.length)
  }

  /** Settles once it is ready. */
  async waitUntilReady(): Promise<void> {
    // Asking without a pause would leave the program no processor to get ready with.
    while ((await this.fetch('/readyz')).status !== 200) await sleep(20)
  }

  /** Ends the program if it has not ended yet, whatever it has still to do. */
  async stop(): Promise<void> {
    // The second signal cuts what is left, and lets the process write down what a coverage report needs.
    this.child.kill('SIGTERM')
    this.child.kill('SIGINT')
    // A test that failed may have left it unread, and the process counts as ended once all of it is here.
    this.child.stderr.resume()
    await this.exited
  }

  get port(): number {
    return Number(new URL(this.url).port)
  }

  /** Settles with the n-th event of that name that the program logs. */
  async waitForLogEvent(event: string, n = 1): Promise<Readonly<Record<string, unknown>>> {
    const line = await this.stderr.waitForLine((line) => line.includes(`"event":"${event}"`), n)
    if (line === undefined) throw new Error(`The program did not log ${event}: ${this.stderr.lines.join('\n')}`)
    return JSON.parse(line) as Record<string, unknown>
  }

  /** Sends a request with the token of ada, or another one. */
  fetch(path: string, init: { method?: string; body?: string } = {}, token = TOKEN): Promise<Response> {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    return fetch(this.url + path, { ...init, headers })
  }

  connect(): Promise<RawConnection> {
    return RawConnection.open(this.url.startsWith('unix:') ? this.url.slice('unix:'.length) : this.port)
  }
}

/** The arguments of Node with which it runs this code before the program. */
export function createImportFlags(code: string): string[] {
  return ['--import', `data:text/javascript,${encodeURIComponent(code)}`]
}

function withDefaults(environment: Environment): Environment {
  const tokens = 'PLANT_STORE_TOKENS_FILE' in environment ? {} : { PLANT_STORE_TOKENS: `ada:${TOKEN}` }
  const port = environment['HOST']?.startsWith('/') ? {} : { PORT: '0' }
  return { ...port, ...tokens, ...environment }
}

/** Starts the program on a free port, with the token of ada, and waits until it serves. It ends with the test. */
export async function startProgram(
  t: TestContext,
  environment: Environment = {},
  launchOptions?: LaunchOptions,
): Promise<Program> {
  const program = new Program(withDefaults(environment), [], [], launchOptions)
  t.after(() => program.stop())
  await program.waitUntilServing()
  return program
}
