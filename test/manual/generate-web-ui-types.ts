import { writeFileSync } from 'node:fs'
import { WEB_UI_TYPES_PATH, generateWebUiTypes } from '../support/page/web-ui-types.ts'

writeFileSync(WEB_UI_TYPES_PATH, await generateWebUiTypes())
