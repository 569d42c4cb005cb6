import { existsSync, readFileSync } from 'node:fs'
import { skipUnlessNode24 } from '../skip-reasons.ts'

const PEERS_DIRECTORY = new URL('../../peers/', import.meta.url)
const isInstalled = existsSync(new URL('node_modules', PEERS_DIRECTORY))
const MANIFEST = JSON.parse(readFileSync(new URL('package.json', PEERS_DIRECTORY), 'utf8')) as Record<string, object>

/** The names of the packages that are installed in `test/peers`. */
export const PEERS: readonly string[] = Object.keys(MANIFEST['dependencies']!)

/** Returns the skip reason for tests that need the packages in `test/peers`, or false to run them. */
export function skipWithoutPeers(): string | false {
  if (process.env['TEST_REQUIRE_ALL'] === '1') return skipUnlessNode24
  return !isInstalled && 'test/peers is not installed; run "npm run peers"'
}

/** Returns whether code imports a package that is installed in `test/peers`. */
export function importsPeers(code: string): boolean {
  return [...code.matchAll(/ from '((?:@[^/']+\/)?[^/']+)/g)].some(([, name]) => PEERS.includes(name!))
}
