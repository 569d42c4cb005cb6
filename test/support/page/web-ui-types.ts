import openapiTypescript, { astToString } from 'openapi-typescript'
import { format, resolveConfig } from 'prettier'
import { openapi } from '../../../src/openapi/openapi.ts'

/** The file of the types that the page for people has of the interface. */
export const WEB_UI_TYPES_PATH = 'src/standalone/paths/page/browser/schema.d.ts'

/** Makes them of the schemas in the interface description. */
export async function generateWebUiTypes(): Promise<string> {
  const { schemas } = openapi.components as { schemas: unknown }
  const description = JSON.stringify({ ...openapi, security: [], paths: {}, components: { schemas } })
  const text = astToString(await openapiTypescript(description))
  const components = text.slice(text.indexOf('export interface components'), text.indexOf('export type $defs'))
  const header = '/** Made of the interface description by `npm run web-ui-types`. */\n'
  return format(header + components, { ...(await resolveConfig(WEB_UI_TYPES_PATH)), filepath: WEB_UI_TYPES_PATH })
}
