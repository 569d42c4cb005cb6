import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { VERSION } from '../version.ts'
import { migrate, start } from './life-cycle.ts'
import { reachableHost } from './listening.ts'
import { describeError, firstReason } from './log.ts'
import { helpText, isPath, readAddress, readSettings, type Settings } from './settings/settings.ts'
import { SettingError } from './settings/variables.ts'

const COMMANDS = new Map<string | undefined, () => unknown>([
  [undefined, () => start(readSettings(process.env))],
  ['--help', () => process.stdout.write(helpText())],
  ['-h', () => process.stdout.write(helpText())],
  ['--version', () => process.stdout.write(`${VERSION}\n`)],
  ['--migrate', () => migrate(readSettings(process.env))],
  ['--ready', () => askReady(readAddress(process.env))],
])
const TAKES = 'takes no argument but --help, --version, --ready or --migrate; settings are variables, such as PORT=4000'

export async function runCommand(args: readonly string[]): Promise<void> {
  const command = args.length > 1 ? 'too many' : args[0]
  try {
    const run = COMMANDS.get(command)
    if (run === undefined) throw new SettingError('The command', TAKES)
    await run()
  } catch (error) {
    const isCheck = command === '--ready'
    const isSetting = error instanceof SettingError
    const message = isCheck || isSetting ? firstReason(error as Error) : describeError(error)
    process.stderr.write(`plant-store: ${message}\n`)
    // Container engines take no other status of a check than 0 and 1.
    process.exit(isSetting && !isCheck ? error.exitStatus : 1)
  }
}

export async function askReady({ host, port }: Pick<Settings, 'host' | 'port'>, timeoutMs = 5000): Promise<void> {
  const at = isPath(host) ? { socketPath: host } : { host: reachableHost(host), port }
  if (at.port === 0) throw new SettingError('PORT', 'takes for --ready the port on which the service listens, not 0')
  const signal = AbortSignal.timeout(timeoutMs)
  const asking = request({ ...at, path: '/readyz', agent: false, signal }).end()
  try {
    const [response] = (await once(asking, 'response')) as [IncomingMessage]
    const body = await text(response)
    if (response.statusCode !== 200) throw new Error(`the service is not ready: ${body}`)
  } catch (error) {
    throw signal.aborted ? new Error('the service did not answer in time') : error
  }
}
