import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

/** Starts a program of `test/long/` again in a process of its own, which takes nothing from this one, with more arguments. */
export function startAgain(url: string, ...args: readonly string[]): ChildProcess {
  const own = [...process.execArgv, fileURLToPath(url), ...process.argv.slice(2)]
  return spawn(process.execPath, [...own, ...args], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
}

/** Settles with the next message of a process. */
export async function nextMessage<T>(child: ChildProcess): Promise<T> {
  const [message] = (await once(child, 'message')) as [T]
  return message
}

/** Ends a process that goes when nobody listens to it any more. */
export async function dismiss(child: ChildProcess): Promise<void> {
  child.disconnect()
  await once(child, 'exit')
}
