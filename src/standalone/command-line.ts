import { VERSION } from '../version.ts'
import { start } from './life-cycle.ts'
import { describeError } from './log.ts'
import { askReady } from './ask-ready.ts'
import { helpText, readAddress, readSettings } from './settings/settings.ts'
import { SettingError } from './settings/variables.ts'

/** Runs the command with its arguments. Ends the process if that fails. */
export async function runCommand(args: readonly string[]): Promise<void> {
  const command = args.length > 1 ? 'too many' : args[0]
  try {
    switch (command) {
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
        await askReady(readAddress(process.env))
        break
      default:
        throw new SettingError('The command', 'takes no argument but --help, --version or --ready')
    }
  } catch (error) {
    const isCheck = command === '--ready'
    const isSetting = error instanceof SettingError
    const message = isCheck || isSetting ? (error as Error).message : describeError(error)
    process.stderr.write(`plant-store: ${message}\n`)
    // Container engines take no other status of a check than 0 and 1.
    process.exit(isSetting && !isCheck ? error.exitStatus : 1)
  }
}
