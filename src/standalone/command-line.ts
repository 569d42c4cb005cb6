import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { VERSION } from '../version.ts'
import { migrate, start } from './lifecycle.ts'
import { toConnectableHost } from './listen.ts'
import { describeError, getRootCauseMessage } from './log.ts'
import { formatHelp, isSocketPath, readAddress, readSettings, type Settings } from './settings/settings.ts'
import { SettingError } from './settings/variables.ts'

const COMMANDS = new Map<string | undefined, () => unknown>([
  [undefined, () => start(readSettings(process.env))],
  ['--help', () => process.stdout.write(formatHelp())],
  ['-h', () => process.stdout.write(formatHelp())],
  ['--version', () => process.stdout.write(`${VERSION}\n`)],
  ['--migrate', () => migrate(readSettings(process.env))],
  ['--ready', () => checkReady(readAddress(process.env))],
])
const USAGE_PROBLEM =
  'takes no argument but --help, --version, --ready or --migrate; settings are variables, such as PORT=4000'

export async function runCommand(args: readonly string[]): Promise<void> {
  const command = args.length > 1 ? 'too many' : args[0]
  try {
    const handler = COMMANDS.get(command)
    if (handler === undefined) throw new SettingError('The command', USAGE_PROBLEM)
    await handler()
  } catch (error) {
    const isReadyCheck = command === '--ready'
    const isSettingError = error instanceof SettingError
    const message = isReadyCheck || isSettingError ? getRootCauseMessage(error as Error) : describeError(error)
    process.stderr.write(`plant-store: ${message}\n`)
    // Container engines take no other status of a check than 0 and 1.
    process.exit(isSettingError && !isReadyCheck ? error.exitStatus : 1)
  }
}

export async function checkReady({ host, port }: Pick<Settings, 'host' | 'port'>, timeoutMs = 5000): Promise<void> {
  const target = isSocketPath(host) ? { socketPath: host } : { host: toConnectableHost(host), port }
  if (target.port === 0)
    throw new SettingError('PORT', 'takes for --ready the port on which the service listens, not 0')
  const signal = AbortSignal.timeout(timeoutMs)
  const clientRequest = request({ ...target, path: '/readyz', agent: false, signal }).end()
  try {
    const [response] = (await once(clientRequest, 'response')) as [IncomingMessage]
    const body = await text(response)
    if (response.statusCode !== 200) throw new Error(`the service is not ready: ${body}`)
  } catch (error) {
    throw signal.aborted ? new Error('the service did not answer in time') : error
  }
}
