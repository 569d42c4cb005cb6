// Copies the version from package.json to src/version.ts. `npm version` runs this script.
import { readFileSync, writeFileSync } from 'node:fs'

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
const target = new URL('../version.ts', import.meta.url)
const text = readFileSync(target, 'utf8')
writeFileSync(target, text.replace(/(?<=VERSION = )'.*'/, `'${version}'`))
