import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'

/** What something ends with: a test, or a program that tests by hand. */
export interface Scope {
  after(end: () => unknown): unknown
}

/** A scope that ends when it is told to: what began last ends first. */
export class OwnScope implements Scope {
  readonly #ends: (() => unknown)[] = []

  after(end: () => unknown): void {
    this.#ends.unshift(end)
  }

  async end(): Promise<void> {
    for (const end of this.#ends) await end()
  }
}

/** Runs what tests by hand. What it starts ends with it, also if it fails or is broken off. */
export async function runByHand(run: (scope: Scope) => Promise<void>): Promise<never> {
  const scope = new OwnScope()
  try {
    const brokenOff = new Promise((_, reject) => process.once('SIGINT', reject).on('unhandledRejection', reject))
    await Promise.race([run(scope), brokenOff])
  } catch (error) {
    console.error(error)
    process.exitCode = 1
  }
  await scope.end()
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
