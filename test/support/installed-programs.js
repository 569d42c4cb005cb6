import { existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The programs that some tests need, as CONTRIBUTING.md explains. */
const PROGRAMS = [
  ...['caddy', 'chromium', 'curl', 'git', 'haproxy', 'java', 'nginx', 'pg_dump', 'pgbouncer', 'postgres', 'python3'],
  ...['sqlite3', 'strace', 'systemd-analyze', 'unshare'],
]

/** Returns lines that say which installed programs the tests use, and which ones aren't installed. */
export function describePrograms({ PATH = '', TEST_POSTGRES_URL, TEST_CHROMIUM } = process.env) {
  // Debian installs servers in folders that aren't in the PATH of users.
  const folders = [...PATH.split(delimiter), '/usr/sbin', ...listPostgresFolders()]
  const isInstalled = (name) =>
    folders.some((folder) => existsSync(join(folder, name))) || (name === 'chromium' && TEST_CHROMIUM !== undefined)
  const missing = PROGRAMS.filter((name) => !isInstalled(name))
  const used = PROGRAMS.filter(isInstalled)
  return [
    `Installed programs that the tests use: ${used.join(', ') || 'none'}.`,
    ...(missing.length > 0 ? [`Tests that need one of these are skipped: ${missing.join(', ')}.`] : []),
    `Postgres: ${TEST_POSTGRES_URL === undefined ? 'PGlite, because TEST_POSTGRES_URL is not set' : 'TEST_POSTGRES_URL'}.`,
  ].join('\n')
}

function listPostgresFolders() {
  const root = '/usr/lib/postgresql'
  return existsSync(root) ? readdirSync(root).map((version) => join(root, version, 'bin')) : []
}
