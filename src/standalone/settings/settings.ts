import { isUtf8 } from 'node:buffer'
import { watchFile } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { schemeOf } from '../../stores/open-store.ts'
import { describeSystemError, log } from '../log.ts'
import { isSocketPath, parseStoreUrl, readValues, type Values } from './table.ts'
import { parseTokenFile, type Tokens } from './tokens.ts'
import { SettingError, type Environment } from './variables.ts'

const CHECK_INTERVAL_MS = 10_000

/** The value of a setting, which can change while the server runs if it comes from a file. */
export interface SettingSource<T> {
  /** The variable that the value comes from. */
  readonly variable: string
  /** Returns the latest valid value. */
  readonly current: () => T
  /** Rereads the file. A file that is missing, empty or invalid is logged and changes nothing. */
  readonly reload: () => void
}

export interface Settings extends Omit<Values, 'tokens' | 'tokensFile' | 'storeUrl' | 'storeUrlFile'> {
  /** Undefined if no tokens are configured. */
  readonly tokens: SettingSource<Tokens> | undefined
  readonly storeUrl: SettingSource<string>
}

/** Reads all settings, and the files that they name. @throws SettingError for the first invalid setting */
export async function readSettings(environment: Environment): Promise<Settings> {
  const values = readValues(environment)
  checkCombinations(environment, values)
  const settings = { ...values, tokens: await openTokens(values), storeUrl: await openStoreUrl(values) }
  if (settings.reusePort) checkReusePort(settings)
  return settings
}

/** @throws SettingError for settings that contradict each other; a precedence could silently use the wrong one */
function checkCombinations(environment: Environment, { host, port, adminPort, adminHost }: Values): void {
  for (const name of ['PLANT_STORE_TOKENS', 'PLANT_STORE_URL']) {
    if (environment[name] !== undefined && environment[`${name}_FILE`] !== undefined) {
      throw new SettingError(`${name} and ${name}_FILE are both set; set only one of them`)
    }
  }
  if (isSocketPath(host) && environment['PORT'] !== undefined) {
    throw new SettingError('PORT must not be set if HOST is the path of a Unix socket')
  }
  if (adminHost !== undefined && adminPort === undefined) {
    throw new SettingError('PLANT_STORE_ADMIN_HOST is set without PLANT_STORE_ADMIN_PORT; set both or neither')
  }
  if (!isSocketPath(host) && adminPort === port && port !== 0) {
    throw new SettingError('PLANT_STORE_ADMIN_PORT must be another port than PORT')
  }
}

function checkReusePort({ host, port, storeUrl }: Settings): void {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
  const requirement = 'PLANT_STORE_REUSE_PORT requires'
  if (major < 22 || (major === 22 && minor < 12)) throw new SettingError(`${requirement} Node 22.12 or later`)
  if (isSocketPath(host) || port === 0) throw new SettingError(`${requirement} a TCP port other than 0`)
  if (schemeOf(storeUrl.current()) === 'memory') {
    throw new SettingError(`${requirement} a store that processes can share: set PLANT_STORE_URL`)
  }
}

async function openTokens({ tokens, tokensFile }: Values): Promise<Settings['tokens']> {
  if (tokensFile === undefined) return tokens && createConstant('PLANT_STORE_TOKENS', tokens)
  const describe = (current: Tokens): object => ({ tokens: current.size })
  const name = 'PLANT_STORE_TOKENS_FILE'
  return openSettingFile(name, tokensFile, 'tokens', (text) => parseTokenFile(name, text), describe)
}

async function openStoreUrl({ storeUrl, storeUrlFile }: Values): Promise<Settings['storeUrl']> {
  if (storeUrlFile === undefined) return createConstant('PLANT_STORE_URL', storeUrl)
  const name = 'PLANT_STORE_URL_FILE'
  function parse(text: string, current?: string): string {
    const url = parseStoreUrl(name, text.replace(/\r?\n$/, ''))
    if (current !== undefined && removePassword(url) !== removePassword(current)) {
      throw new SettingError(`${name}: more than the password has changed; restart the server to use the new URL`)
    }
    return url
  }
  return openSettingFile(name, storeUrlFile, 'store-url', parse, () => ({}))
}

const createConstant = <T>(variable: string, value: T): SettingSource<T> => ({
  variable,
  current: () => value,
  reload: () => undefined,
})

function removePassword(storeUrl: string): string {
  if (!URL.canParse(storeUrl)) return storeUrl
  const url = new URL(storeUrl)
  url.password = ''
  url.searchParams.delete('password')
  return url.href
}

/**
 * Reads a setting from a file, and rereads it when the file changes.
 * @param event the log event: `tokens` is logged as `tokens-read` or `tokens-kept`
 * @param parse throws a SettingError for an invalid file; gets the current value when the file is reread
 * @param describe returns the fields that describe a value in the log
 */
async function openSettingFile<T>(
  variable: string,
  path: string,
  event: 'tokens' | 'store-url',
  parse: (text: string, current?: T) => T,
  describe: (value: T) => object,
): Promise<SettingSource<T>> {
  let value: T
  const read = async (current?: T): Promise<void> => {
    value = parse(await readText(variable, path), current)
  }
  /** The latest read. Reads run one after another, so that the last one determines the value. */
  let pending = read()

  function reload(): void {
    pending = pending.then(async () => {
      try {
        await read(value)
        log(`${event}-read`, describe(value))
      } catch (error) {
        log(`${event}-kept`, { ...describe(value), reason: (error as Error).message })
      }
    })
  }
  await pending
  watchFile(path, { interval: CHECK_INTERVAL_MS, persistent: false }, reload)
  return { variable, current: () => value, reload }
}

async function readText(variable: string, path: string): Promise<string> {
  let bytes: Buffer | undefined
  try {
    // Reading from a FIFO might never end.
    bytes = (await stat(path)).isFile() ? await readFile(path) : undefined
  } catch (error) {
    throw new SettingError(`${variable}: the file cannot be read (${describeSystemError(error)})`)
  }
  if (bytes === undefined) throw new SettingError(`${variable} must be the path of a regular file or of a link to one`)
  if (!isUtf8(bytes)) throw new SettingError(`${variable}: the file must be UTF-8`)
  return bytes.toString().replace(/^\ufeff/, '')
}
