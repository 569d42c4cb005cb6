import { execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const directory = fileURLToPath(new URL('peers/', import.meta.url))

/** Installs the peers if they are missing or older than their lockfile. */
export function installPeers(): void {
  const installedLockfile = `${directory}node_modules/.package-lock.json`
  if (
    existsSync(installedLockfile) &&
    statSync(installedLockfile).mtimeMs >= statSync(`${directory}package-lock.json`).mtimeMs
  )
    return
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: directory, stdio: ['ignore', 2, 2] })
}
