import { execFileSync } from 'node:child_process'

/** Why a test that needs a command is skipped; false if it runs. With TEST_REQUIRE_ALL=1 it always runs. */
export function withoutCommand(command: string): string | false {
  if (process.env['TEST_REQUIRE_ALL'] === '1') return false
  try {
    execFileSync('sh', ['-c', `command -v ${command}`])
    return false
  } catch {
    return `${command} is not installed`
  }
}
