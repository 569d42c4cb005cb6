import { execFileSync, spawnSync } from 'node:child_process'
import process from 'node:process'

/**
 * Why a test is skipped that takes long and shows little that depends on the version of Node; false if it is not.
 * Continuous integration runs such tests once.
 */
export const skipUnlessNode24: string | false =
  process.env['TEST_REQUIRE_ALL'] === '1' && !process.version.startsWith('v24.') && 'is run on Node 24'

/** Why a test that needs a command is skipped; false if it runs. With TEST_REQUIRE_ALL=1 it always runs. */
export function skipWithoutCommand(command: string): string | false {
  if (process.env['TEST_REQUIRE_ALL'] === '1') return false
  try {
    // Debian has its servers in a folder that only root searches.
    execFileSync('sh', ['-c', `PATH=$PATH:/usr/sbin; command -v ${command}`])
    return false
  } catch {
    return `${command} is not installed`
  }
}

/** Why a test is skipped that traces system calls; false if it is not. */
export const skipWithoutStrace: string | false =
  process.env['TEST_REQUIRE_ALL'] !== '1' &&
  spawnSync('strace', ['true']).status !== 0 &&
  'strace is not installed, or not permitted'

/** Why a test is skipped that takes a network of its own; false if it is not. */
export const skipWithoutNetworkNamespace: string | false =
  process.env['TEST_REQUIRE_ALL'] !== '1' &&
  spawnSync('unshare', ['-rn', 'ip', 'link', 'set', 'lo', 'up']).status !== 0 &&
  'a network of its own is not permitted, or unshare or ip is not installed'
