import { execFileSync, spawnSync } from 'node:child_process'
import { isBuiltin } from 'node:module'
import process from 'node:process'

/**
 * The skip reason for slow tests that hardly depend on the Node version, or false to run them. Continuous integration
 * runs them on Node 24 only.
 */
export const skipUnlessNode24: string | false =
  process.env['TEST_REQUIRE_ALL'] === '1' && !process.version.startsWith('v24.') && 'runs only on Node 24'

/** The skip reason for tests that need `node:sqlite`, or false to run them. */
export const skipWithoutSqlite: string | false = !isBuiltin('node:sqlite') && 'SQLite needs Node 22.13 or later'

/** The skip reason for tests that need a PostgreSQL server, or false to run them. */
export const skipWithoutPostgresUrl: string | false =
  process.env['TEST_POSTGRES_URL'] === undefined && 'TEST_POSTGRES_URL is not set'

/** Returns the skip reason for tests that need a Node version, or false to run them. */
export function skipBeforeNode(major: number): string | false {
  return Number.parseInt(process.versions.node) < major && `needs Node ${major} or later`
}

/**
 * Returns the skip reason for tests that need a command, or false to run them. With TEST_REQUIRE_ALL=1, they always
 * run.
 */
export function skipWithoutCommand(command: string): string | false {
  if (process.env['TEST_REQUIRE_ALL'] === '1') return false
  try {
    // Debian installs servers in /usr/sbin, which only root has in the PATH.
    execFileSync('sh', ['-c', `PATH=$PATH:/usr/sbin; command -v ${command}`])
    return false
  } catch {
    return `${command} is not installed`
  }
}

/** The skip reason for tests that trace system calls, or false to run them. */
export const skipWithoutStrace: string | false =
  process.env['TEST_REQUIRE_ALL'] !== '1' &&
  spawnSync('strace', ['true']).status !== 0 &&
  'strace is not installed, or not permitted'

/** The skip reason for tests that replace a system file in a mount namespace, or false to run them. */
export const skipWithoutMountNamespace: string | false =
  process.env['TEST_REQUIRE_ALL'] !== '1' &&
  spawnSync('unshare', ['-m', 'true']).status !== 0 &&
  'mount namespaces are not permitted, or unshare is not installed'
