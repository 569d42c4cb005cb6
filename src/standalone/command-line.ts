import { VERSION } from '../version.ts'
import { start } from './life-cycle.ts'
import { describeError } from './log.ts'
import { askReady } from './ask-ready.ts'
import { helpText, readAddress, readSettings } from './settings/settings.ts'
import { SettingError } from './settings/variables.ts'

/** Runs the command with its arguments. Ends the process if that fails. */
export async function runCommand(args: readonly string[]): Promise<void> {
  try {
    const [argument] = args
    switch (args.length > 1 ? 'too many' : argument) {
      case undefined:
        await start(readSettings(process.env))
        break
      case '--help':
      case '-h':
        process.stdout.write(helpText())
        break
      case '--version':
        process.stdout.write(`${VERSION}\n`)
        break
      case '--ready':
        await reportReady()
        break
      default:
        throw new SettingError('The command', 'takes no argument but --help, --version or --ready')
    }
  } catch (error) {
    const [message, status] =
      error instanceof SettingError ? [error.message, error.exitStatus] : [describeError(error), 1]
    process.stderr.write(`plant-store: ${message}\n`)
    process.exit(status)
  }
}

/** Container engines take no other status than 0 and 1. */
async function reportReady(): Promise<void> {
  try {
    await askReady(readAddress(process.env))
  } catch (error) {
    process.stderr.write(`plant-store: ${(error as Error).message}\n`)
    process.exitCode = 1
  }
}
