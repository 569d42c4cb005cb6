import { existsSync, readFileSync } from 'node:fs'
import { skipUnlessNode24 } from '../skip-reasons.ts'

const PEERS_DIRECTORY = new URL('../../peers/', import.meta.url)
const isInstalled = existsSync(new URL('node_modules', PEERS_DIRECTORY))
const MANIFEST = JSON.parse(readFileSync(new URL('package.json', PEERS_DIRECTORY), 'utf8')) as Record<string, object>

/** The names of what `test/peers` installs. */
export const PEERS: readonly string[] = Object.keys(MANIFEST['dependencies']!)

/** Why a test is skipped that needs what `test/peers` installs; false if it is not. */
export function skipWithoutPeers(): string | false {
  if (process.env['TEST_REQUIRE_ALL'] === '1') return skipUnlessNode24
  return !isInstalled && 'test/peers is not installed: npm run peers'
}

/** Whether code imports what `test/peers` installs. */
export function importsPeers(code: string): boolean {
  return [...code.matchAll(/ from '((?:@[^/']+\/)?[^/']+)/g)].some(([, name]) => PEERS.includes(name!))
}
