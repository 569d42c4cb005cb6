import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { once, type EventEmitter } from 'node:events'
import './environment.js'

/** How long a child process may take to exit before it's killed. */
const MAX_EXIT_MS = 10_000

/** Runs cleanup callbacks when it ends, as a test context does. */
export interface CleanupScope {
  after(callback: () => unknown): unknown
}

/**
 * Starts a child process. It's killed when the scope ends: by default with SIGKILL, because some processes take a while
 * to exit on SIGTERM.
 */
export function startChild(
  t: CleanupScope,
  command: string,
  args: readonly string[],
  options: SpawnOptions,
): ChildProcess {
  const child = spawn(command, args, options)
  const exited = once(child, 'exit')
  t.after(async () => {
    child.kill(options.killSignal ?? 'SIGKILL')
    // The process might ignore another signal.
    const timer = setTimeout(() => child.kill('SIGKILL'), MAX_EXIT_MS)
    await exited.finally(() => clearTimeout(timer))
  })
  return child
}

/**
 * Waits for an event of a child process, or of one of its streams, and returns the first argument of the event.
 * @throws Error if the child exits first, because the event would never occur
 */
export async function waitForChild<T>(child: ChildProcess, event: string, emitter: EventEmitter = child): Promise<T> {
  if (child.exitCode !== null || child.signalCode !== null) throw new Error(describeExit(child, event))
  const controller = new AbortController()
  const { signal } = controller
  // All output has been read before `close` is emitted.
  const closed = once(child, 'close', { signal }).then(() => {
    throw new Error(describeExit(child, event))
  })
  try {
    return (await Promise.race([once(emitter, event, { signal }), closed]))[0] as T
  } finally {
    controller.abort()
    await closed.catch(() => undefined)
  }
}

function describeExit({ spawnargs, exitCode, signalCode }: ChildProcess, event: string): string {
  return `${spawnargs.join(' ')} exited with ${exitCode ?? signalCode} before "${event}"`
}

/** Waits until a child process prints something to a stream, and returns it. */
export async function waitForOutput(child: ChildProcess, stream: 'stdout' | 'stderr' = 'stdout'): Promise<string> {
  return String(await waitForChild<Buffer>(child, 'data', child[stream]!))
}
