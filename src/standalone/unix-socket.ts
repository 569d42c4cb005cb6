import { once } from 'node:events'
import { lstatSync, rmSync } from 'node:fs'
import { connect, type Server } from 'node:net'
import { SettingError } from './settings/variables.ts'

/**
 * Listens on a Unix socket, whose file is gone when listening or the process ends. A socket that nobody listens on is
 * replaced: a process that was killed has left it.
 * @param mode the permissions of the file
 * @returns the URL of the server
 * @throws SettingError if it cannot listen there
 */
export async function listenOnPath(server: Server, path: string, mode: number): Promise<string> {
  try {
    if (await isLeft(path)) rmSync(path)
    // This makes the file. If its permissions came later, others could be quicker.
    const umask = process.umask(0o777 & ~mode)
    const listening = once(server.listen({ path }), 'listening')
    process.umask(umask)
    await listening
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const takes = 'takes the path of a Unix socket that can be made'
    throw code === 'EADDRINUSE'
      ? new SettingError('HOST', `${takes}; somebody listens on this one, or it is another kind of file (${code})`, 1)
      : new SettingError('HOST', `${takes}, and this one cannot (${code})`)
  }
  process.once('exit', () => server.close())
  return `unix:${path}`
}

async function isLeft(path: string): Promise<boolean> {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() !== true) return false
  const socket = connect(path)
  const isRefused = await once(socket, 'connect').then(
    () => false,
    (error: unknown) => (error as NodeJS.ErrnoException).code === 'ECONNREFUSED',
  )
  socket.destroy()
  return isRefused
}
