import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'

/** What something ends with: a test, or a program that tests by hand. */
export interface CleanupScope {
  after(callback: () => unknown): unknown
}

/** Runs what tests by hand. What it starts ends with it, the last first, also if it fails or is broken off. */
export async function runWithCleanup(main: (scope: CleanupScope) => Promise<void>): Promise<never> {
  const cleanups: (() => unknown)[] = []
  try {
    const interrupted = new Promise((_, reject) => process.once('SIGINT', reject).on('unhandledRejection', reject))
    await Promise.race([main({ after: (cleanup) => cleanups.unshift(cleanup) }), interrupted])
  } catch (error) {
    console.error(error)
    process.exitCode = 1
  }
  for (const cleanup of cleanups) await cleanup()
  process.exit()
}

/** Starts a process. It is killed with its scope: some end only after a while if they are asked to. */
export function startChild(
  t: CleanupScope,
  command: string,
  args: readonly string[],
  options: SpawnOptions,
): ChildProcess {
  const child = spawn(command, args, options)
  const exited = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGKILL')
    await exited
  })
  return child
}
