import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startChild, type CleanupScope } from './child-process.ts'
import { createTempDirectory } from './temp-files.ts'
import { waitUntilListening } from './wait-until-listening.ts'

/** Starts nginx in the foreground, and waits until it is listening on a port. */
export function startNginx(t: CleanupScope, port: number, http: string): Promise<void> {
  const tempPaths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`)
  const configuration = `
    daemon off;
    master_process off;
    pid nginx.pid;
    error_log stderr crit;
    events { worker_connections 1024; }
    http {
      access_log off;
      ${tempPaths.join(' ')}
      ${http}
    }`
  return start(t, 'nginx', port, configuration, (file) => ['-p', join(file, '..'), '-c', file, '-e', 'stderr'])
}

/** Starts HAProxy in the foreground, and waits until it is listening on a port. */
export function runHaproxy(t: CleanupScope, port: number, configuration: string): Promise<void> {
  return start(t, 'haproxy', port, configuration, (file) => ['-db', '-q', '-f', file])
}

/** Starts Caddy without its admin API, and waits until it is listening on a port. */
export function startCaddy(t: CleanupScope, port: number, configuration: string): Promise<void> {
  const args = (file: string): string[] => ['run', '--config', file, '--adapter', 'caddyfile']
  return start(t, 'caddy', port, `{\n  admin off\n}\n${configuration}`, args)
}

async function start(
  t: CleanupScope,
  name: 'nginx' | 'haproxy' | 'caddy',
  port: number,
  configuration: string,
  args: (file: string) => readonly string[],
): Promise<void> {
  const folder = createTempDirectory(t)
  const file = join(folder, 'configuration')
  writeFileSync(file, `${configuration}\n`)
  const env = { PATH: `${process.env['PATH']}:/usr/sbin`, HOME: folder }
  const stderr = name === 'caddy' ? 'ignore' : 'inherit'
  const child = startChild(t, name, args(file), { env, stdio: ['ignore', 'ignore', stderr] })
  await waitUntilListening(port, '127.0.0.1', () => assert.equal(child.exitCode, null, `${name} has exited`))
}
