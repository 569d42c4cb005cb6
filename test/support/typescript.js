// Lets a Node run TypeScript that cannot do so itself, at half the price of tsx: node --import
// ./test/support/typescript.js
import { register } from 'node:module'

process.setSourceMapsEnabled(true)
register('./typescript-hooks.js', import.meta.url)
