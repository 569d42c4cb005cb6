import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { addAbortSignal } from 'node:stream'
import { text } from 'node:stream/consumers'
import { VERSION } from '../version.ts'
import { migrate, start } from './lifecycle.ts'
import { toConnectableHost } from './listen.ts'
import { describeError, getRootCauseMessage } from './log.ts'
import { readSettings, type Settings } from './settings/settings.ts'
import { isSocketPath, readAddress, VARIABLES } from './settings/table.ts'
import { SettingError, type Variable } from './settings/variables.ts'

const COMMANDS = new Map<string | undefined, () => unknown>([
  [undefined, async () => start(await readSettings(process.env))],
  ['--help', () => process.stdout.write(formatHelp())],
  ['-h', () => process.stdout.write(formatHelp())],
  ['--version', () => process.stdout.write(`${VERSION}\n`)],
  ['--migrate', async () => migrate(await readSettings(process.env))],
  ['--ready', () => checkReady(readAddress(process.env))],
])
const READY_TIMEOUT_MS = 5000
const USAGE_MESSAGE =
  'unknown argument; use --help, --version, --ready or --migrate. Settings are environment variables, such as PORT=4000'

export async function runCommand(args: readonly string[]): Promise<void> {
  // When the reader of the output exits, or the disk is full, writes emit errors. A running server goes on, and later
  // exits with a status of its own.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => (process.exitCode = 1))
  const command = args.length > 1 ? 'too many' : args[0]
  try {
    const handler = COMMANDS.get(command)
    if (handler === undefined) throw new SettingError(USAGE_MESSAGE)
    await handler()
  } catch (error) {
    const isReadyCheck = command === '--ready'
    const isSettingError = error instanceof SettingError
    const message = isReadyCheck || isSettingError ? getRootCauseMessage(error as Error) : describeError(error)
    process.stderr.write(`plant-store: ${message}\n`)
    // Container engines accept only the exit statuses 0 and 1 from a health check.
    process.exit(isSettingError && !isReadyCheck ? error.exitStatus : 1)
  }
}

/** Rejects unless the `/readyz` of a running server returns 200 in time. */
async function checkReady({ host, port }: Pick<Settings, 'host' | 'port'>): Promise<void> {
  const target = isSocketPath(host) ? { socketPath: host } : { host: toConnectableHost(host), port }
  if (target.port === 0)
    throw new SettingError('PORT must not be 0 for --ready; set it to the port that the server listens on')
  const signal = AbortSignal.timeout(READY_TIMEOUT_MS)
  const clientRequest = request({ ...target, path: '/readyz', agent: false, signal }).end()
  try {
    const [response] = (await once(clientRequest, 'response')) as [IncomingMessage]
    // Without its own signal, an aborted response never ends, and the process would exit with 0.
    const body = await text(addAbortSignal(signal, response))
    if (response.statusCode !== 200) throw new Error(`the server is not ready: ${body}`)
  } catch (error) {
    throw signal.aborted ? new Error(`the server did not respond within ${READY_TIMEOUT_MS} ms`) : error
  }
}

const USAGE = `Usage: plant-store [--help | --version | --ready | --migrate]

Without an option, plant-store starts the server.

  --help     print this help
  --version  print the version
  --ready    check whether the server at HOST and PORT is ready; exits with 0 if it is, else with 1
  --migrate  create the table or the SQLite file if it does not exist, and exit

Settings are environment variables. These are their defaults, with the accepted values in parentheses:

`

function formatHelp(): string {
  const rows = Object.values<Variable<unknown>>(VARIABLES).map(
    ({ name, defaultValue, description, expects }) =>
      `  ${defaultValue === undefined ? name : `${name}=${defaultValue}`}\n      ${description} (${expects})\n`,
  )
  return USAGE + rows.join('')
}
