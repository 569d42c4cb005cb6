import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** What a server process has used since it started. */
export interface Usage {
  /** Microseconds, user and system, of all its threads. */
  readonly cpu: number
  /** Bytes that are resident now. */
  readonly rss: number
}

/**
 * V8 makes room for young objects small once a process has allocated little for 5 s, as while others get ready, and leaves
 * it so: then collecting them costs twice as much. So it is of one size in all processes.
 */
export const YOUNG_GENERATION_FLAG = '--min-semi-space-size=16'

/** A contestant that listens in a process of its own. */
export class ServerProcess {
  readonly #child: ChildProcess
  readonly port: number

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  /**
   * @param contestant its file, seen from this folder
   * @param settings handed to its default export
   * @param profileDirectory a folder for its CPU profile
   */
  static async start(contestant: string, settings: object, profileDirectory?: string): Promise<ServerProcess> {
    const file = new URL(contestant, import.meta.url).href
    const child = fork(fileURLToPath(new URL('serve.js', import.meta.url)), [file, JSON.stringify(settings)], {
      execArgv: [
        YOUNG_GENERATION_FLAG,
        ...(profileDirectory === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileDirectory}`]),
      ],
      env: { ...process.env, NODE_ENV: 'production' },
    })
    const { port } = await waitForMessage<{ port: number }>(child)
    return new ServerProcess(child, port)
  }

  async usage(): Promise<Usage> {
    const response = waitForMessage<{ cpu: NodeJS.CpuUsage; rss: number }>(this.#child)
    this.#child.send('usage')
    const { cpu, rss } = await response
    return { cpu: cpu.user + cpu.system, rss }
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const exit = once(this.#child, 'exit')
    this.#child.disconnect()
    await exit
  }
}

async function waitForMessage<T>(child: ChildProcess): Promise<T> {
  const controller = new AbortController()
  const { signal } = controller
  try {
    return await Promise.race([
      once(child, 'message', { signal }).then(([message]) => message as T),
      once(child, 'exit', { signal }).then(([status]) => {
        throw new Error(`a contestant ended with status ${String(status)}`)
      }),
    ])
  } finally {
    controller.abort()
  }
}
