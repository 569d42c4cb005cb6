import type { ChildProcess } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startChild, waitForChild, type CleanupScope } from './child-process.ts'
import type { Protocol } from './client.ts'
import { skipWithoutPostgresUrl, skipWithoutSqlite } from './skip-reasons.ts'
import { createProject, ENV_WITHOUT_COVERAGE } from './packed-package.ts'
import { PEERS, skipWithoutPeers } from './extra-packages.ts'

const POSTGRES_URL = process.env['TEST_POSTGRES_URL']
const REPORT_LISTENING = new URL('report-listening.js', import.meta.url).href
const CERTIFICATE_DIRECTORY = fileURLToPath(new URL('./', import.meta.url))

/** Returns the skip reason of an example, or false to run it. */
export function getSkipReason(code: string): string | false {
  if (PEERS.some((name) => code.includes(` from '${name}'`))) return skipWithoutPeers
  if (code.includes('sqliteStore(') && skipWithoutSqlite !== false) return skipWithoutSqlite
  return code.includes('postgres://') && skipWithoutPostgresUrl
}

/** Returns the protocol of an example's server. */
export function getProtocol(code: string): Protocol {
  if (code.includes("'node:http2'")) return 'h2'
  return code.includes("'node:https'") ? 'https' : 'http'
}

/** Returns the path under which an example mounts the service. */
export function getMountPath(code: string): string {
  return /'(\/api[^']*)'/.exec(code)?.[1] ?? ''
}

/**
 * Starts an example in a project in which the packed package is installed, and waits until it is listening. The process
 * is killed when the scope ends.
 * @param project the folder of the project; by default, a new project
 */
export async function startExample(
  t: CleanupScope,
  code: string,
  project?: string,
): Promise<{ readonly port: number; readonly child: ChildProcess }> {
  const program = code
    .replace('3000', '0')
    .replace('postgres://user:password@host/database', POSTGRES_URL ?? '')
    .replaceAll("'localhost.", `'${CERTIFICATE_DIRECTORY}localhost.`)
  const cwd = project ?? (await createProject(t))
  await writeFile(join(cwd, 'main.mjs'), program)
  const child = startChild(t, process.execPath, ['--import', REPORT_LISTENING, 'main.mjs'], {
    cwd,
    env: ENV_WITHOUT_COVERAGE,
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  // Drains the output, so that the process never blocks on a full pipe.
  child.stdout!.resume()
  const port = await waitForChild<number>(child, 'message')
  return { port, child }
}
