import { schemeOf } from '../../stores/open-store.ts'
import { openSettingFile, type SettingSource } from './setting-file.ts'
import { isSocketPath, parseStoreUrl, readValues, type Values } from './table.ts'
import { parseTokenFile, type Tokens } from './tokens.ts'
import { SettingError, type Environment } from './variables.ts'

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

export const createConstant = <T>(variable: string, value: T): SettingSource<T> => ({
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
