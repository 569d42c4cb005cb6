import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startChild, type Scope } from '../child.ts'
import type { Protocol } from '../wire/client.ts'
import { authenticate } from '../../contract/cases.ts'
import { programsOf, readDocument, type Block } from './documents.ts'
import { createProject, UNCOVERED } from './packed.ts'
import { needsPeers, skipWithoutPeers } from './peers.ts'

const POSTGRES_URL = process.env['TEST_POSTGRES_URL']
const REPORT_LISTENING = new URL('../program/report-listening.js', import.meta.url).href
const CERTIFICATES = fileURLToPath(new URL('../wire/tls/', import.meta.url))

/** Why an example is skipped; false if it is not. */
export function skipExample(code: string): string | false {
  if (needsPeers(code)) return skipWithoutPeers()
  if (code.includes('sqliteStore(') && !isBuiltin('node:sqlite')) return 'this Node has no node:sqlite'
  return code.includes('postgres://') && POSTGRES_URL === undefined && 'TEST_POSTGRES_URL is not set'
}

/** How docs/host-examples.md mounts the service. */
export const HOST_EXAMPLES: readonly Block[] = programsOf(readDocument('docs/host-examples.md'))

/** Whether code is a whole program; what is none begins with the path of its file. */
export function isProgram(code: string): boolean {
  return !code.startsWith('// ')
}

/** What an example speaks. */
export function protocolOf(code: string): Protocol {
  if (code.includes("'node:http2'")) return 'h2'
  return code.includes("'node:https'") ? 'https' : 'http'
}

/** What comes before `/plants` in an example. */
export function prefixOf(code: string): string {
  return /'(\/api[^']*)'/.exec(code)?.[1] ?? ''
}

/** Has each token stand for an owner of its own, and the owner `many` have 5,000 plants. */
export function withOwners(code: string): string {
  const options = `{ store, authenticate: ${authenticate.toString()}`
  return `
    import { memoryStore } from 'plant-store'
    const store = memoryStore()
    for (let id = 1n; id <= 5000n; id++) store.create('many', { id, name: \`Plant \${id}\` })
    ${code.replace("{ tokens: { 'a-long-random-token': 'ada' }", options)}`
}

/** The list of the owner who has many plants. */
export const MANY: string = JSON.stringify(Array.from({ length: 5000 }, (_, i) => ({ name: `Plant ${i + 1}` })))

/**
 * Runs an example, in a project that has the package as a user gets it, until it listens. It ends with the test.
 * @param project where; by default in a project of its own
 */
export async function startExample(
  t: Scope,
  code: string,
  project?: string,
  env: NodeJS.ProcessEnv = {},
): Promise<{ readonly port: number; readonly child: ChildProcess }> {
  const program = code
    .replace('3000', '0')
    .replace('plants.db', ':memory:')
    .replace('postgres://user:password@host/database', POSTGRES_URL ?? '')
    .replaceAll("'localhost.", `'${CERTIFICATES}localhost.`)
  const cwd = project ?? (await createProject(t))
  await writeFile(join(cwd, 'main.mjs'), program)
  const child = startChild(t, process.execPath, ['--import', REPORT_LISTENING, 'main.mjs'], {
    cwd,
    env: { ...UNCOVERED, ...env },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  // What most hosts say of themselves is of no interest.
  child.stdout!.resume()
  const ended = once(child, 'exit').then(() => [])
  const [port] = (await Promise.race([once(child, 'message'), ended])) as [number?]
  assert.ok(port !== undefined, 'the example ends without listening')
  return { port, child }
}
