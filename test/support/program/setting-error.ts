import assert from 'node:assert/strict'
import { SettingError } from '../../../src/standalone/settings/variables.ts'

/** What is said of a setting that is refused. */
export function settingError(read: () => unknown): string {
  let message = ''
  assert.throws(read, (error) => {
    message = (error as Error).message
    return error instanceof SettingError
  })
  return message
}
