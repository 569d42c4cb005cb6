import openapiTypescript, { astToString } from 'openapi-typescript'
import { format, resolveConfig } from 'prettier'
import { openapi } from '../../../src/openapi/openapi.ts'

/** The file with the types of the API that the web UI uses. */
export const WEB_UI_TYPES_PATH = 'src/standalone/paths/page/browser/schema.d.ts'

/** Generates these types from the schemas of the OpenAPI document. */
export async function generateWebUiTypes(): Promise<string> {
  const { schemas } = openapi.components as { schemas: unknown }
  const description = JSON.stringify({ ...openapi, security: [], paths: {}, components: { schemas } })
  const text = astToString(await openapiTypescript(description))
  const components = text.slice(text.indexOf('export interface components'), text.indexOf('export type $defs'))
  const header = '/** Generated from the OpenAPI document by `npm run web-ui-types`. */\n'
  return format(header + components, { ...(await resolveConfig(WEB_UI_TYPES_PATH)), filepath: WEB_UI_TYPES_PATH })
}
