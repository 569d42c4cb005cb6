import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'

/** What something ends with: a test, or a program that tests by hand. */
export interface Scope {
  after(end: () => unknown): unknown
}

/** Runs what tests by hand. What it starts ends with it, the last first, also if it fails or is broken off. */
export async function runByHand(run: (scope: Scope) => Promise<void>): Promise<never> {
  const ends: (() => unknown)[] = []
  try {
    const brokenOff = new Promise((_, reject) => process.once('SIGINT', reject).on('unhandledRejection', reject))
    await Promise.race([run({ after: (end) => ends.unshift(end) }), brokenOff])
  } catch (error) {
    console.error(error)
    process.exitCode = 1
  }
  for (const end of ends) await end()
  process.exit()
}

/** Starts a process. It is killed with its scope: some end only after a while if they are asked to. */
export function startChild(t: Scope, command: string, args: readonly string[], options: SpawnOptions): ChildProcess {
  const child = spawn(command, args, options)
  const ended = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGKILL')
    await ended
  })
  return child
}
