import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { once } from 'node:events'

/** What something ends with: a test, or a program that tests by hand. */
export interface Scope {
  after(end: () => unknown): unknown
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
