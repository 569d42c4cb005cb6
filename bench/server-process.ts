import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

/** The resources that a server process uses. */
export interface Usage {
  /** User and system CPU time of all threads since the start, in microseconds. */
  readonly cpu: number
  /** Resident memory in bytes. */
  readonly rss: number
}

/**
 * Fixes the size of the young generation. Otherwise V8 would permanently shrink it in a process that allocates little
 * for 5 s, for example while other contestants warm up, and garbage collection would then cost twice as much.
 */
export const YOUNG_GENERATION_FLAG = '--min-semi-space-size=16'

/** A contestant's server, which runs in its own process. */
export class ServerProcess {
  readonly #child: ChildProcess
  readonly port: number

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  /**
   * @param contestant the path of the contestant's file, relative to this folder
   * @param settings passed to the default export of the file
   * @param profileDirectory the folder to write a CPU profile to
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
        throw new Error(`A contestant exited with status ${String(status)}.`)
      }),
    ])
  } finally {
    controller.abort()
  }
}
