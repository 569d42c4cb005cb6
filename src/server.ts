#!/usr/bin/env node
import { parseArgs } from 'node:util'
import { helpText, readSettings } from './standalone/config.ts'
import { start } from './standalone/lifecycle.ts'
import { SettingError } from './standalone/variables.ts'

try {
  const { values } = parseArgs({ options: { help: { type: 'boolean', short: 'h' } } })
  if (values.help === true) process.stdout.write(helpText())
  else await start(readSettings(process.env))
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException
  const isMisuse = error instanceof SettingError || code?.startsWith('ERR_PARSE_ARGS')
  if (!isMisuse) throw error
  process.stderr.write(`plant-store: ${message}\n`)
  process.exit(2)
}
