import { writeFileSync } from 'node:fs'
import { PAGE_TYPES, pageTypes } from '../support/page/page-types.ts'

writeFileSync(PAGE_TYPES, await pageTypes())
