// Lets Node run TypeScript: a version that cannot do so itself, and one that would erase the types again in every
// process, which takes as long as a small test: node --import ./test/support/typescript.js
import module from 'node:module'
import { load } from './typescript-hooks.js'

if (module.registerHooks !== undefined) {
  module.registerHooks({ load })
} else {
  process.setSourceMapsEnabled(true)
  module.register('./typescript-hooks.js', import.meta.url)
}
