// Lets Node run TypeScript files, with a cache. Some Node versions don't support TypeScript, and the others strip types
// again in every process, which takes as long as a small test. To run one file:
// node --import ./test/support/typescript.js test/plants/plant.test.ts
import module from 'node:module'
import { cleanEnvironment } from './environment.js'
import { load } from './typescript-hooks.js'

// Other processes, such as servers that tests start, get their settings from their environment.
if (/\.test\.\w+$/.test(process.argv[1] ?? '')) cleanEnvironment()

if (module.registerHooks !== undefined) {
  module.registerHooks({ load })
} else {
  process.setSourceMapsEnabled(true)
  module.register('./typescript-hooks.js', import.meta.url)
}
