// The standalone server, assembled the way its own entry point does it. Run `npm run build` first.
import { memoryStore } from '../../dist/index.js'
import { createProgram } from '../../dist/standalone/program.js'
import { readSettings } from '../../dist/standalone/settings/settings.js'
import { createTokenSource } from '../../dist/standalone/settings/reload.js'

/** @param options.environment additional settings, as environment variables */
export default function listen({ token, options }) {
  const settings = readSettings({ PLANT_STORE_TOKENS: `bench:${token}`, ...options?.environment })
  const { http, admin } = createProgram(settings, {
    store: memoryStore(),
    scheme: 'memory',
    authenticate: createTokenSource(settings.tokens).authenticate,
    isDraining: () => false,
  })
  admin?.server.listen(0, '127.0.0.1')
  return http.server.listen(0, '127.0.0.1')
}
