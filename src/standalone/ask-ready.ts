import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { reachableHost } from './listening.ts'
import { isPath, type Address } from './settings/settings.ts'
import { SettingError } from './settings/variables.ts'

/** How long the service may take. It gives its store a second. */
const TIMEOUT_MS = 5000

/**
 * Asks the service at an address of this machine whether it is ready.
 * @throws Error that says why it is not
 */
export async function askReady({ host, port }: Address, timeoutMs: number = TIMEOUT_MS): Promise<void> {
  const at = isPath(host) ? { socketPath: host } : { host: reachableHost(host), port }
  if (at.port === 0) throw new SettingError('PORT', 'takes for --ready the port on which the service listens, not 0')
  const signal = AbortSignal.timeout(timeoutMs)
  const asking = request({ ...at, path: '/readyz', agent: false, signal }).end()
  try {
    const [response] = (await once(asking, 'response')) as [IncomingMessage]
    const body = await text(response)
    if (response.statusCode === 200) return
    throw new Error(`the service is not ready: ${body}`)
  } catch (error) {
    throw signal.aborted ? new Error('the service did not answer in time') : error
  }
}
