#!/usr/bin/env node
import { helpText, readSettings } from './standalone/settings.ts'
import { start } from './standalone/life-cycle.ts'
import { describeError } from './standalone/log.ts'
import { SettingError } from './standalone/variables.ts'

const [argument, ...rest] = process.argv.slice(2)

try {
  if (argument === '--help' && rest.length === 0) process.stdout.write(helpText())
  else if (argument !== undefined) throw new SettingError('The command', 'takes no argument except --help')
  else await start(readSettings(process.env))
} catch (error) {
  const isSetting = error instanceof SettingError
  process.stderr.write(`plant-store: ${isSetting ? error.message : describeError(error)}\n`)
  process.exit(isSetting ? 2 : 1)
}
