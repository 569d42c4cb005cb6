import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { openapi } from '../src/index.ts'
import { VERSION } from '../src/version.ts'

const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
const { version } = JSON.parse(manifest) as { version: string }

test('src/version.ts has the version of package.json', () => {
  assert.equal(VERSION, version)
})

test('the interface description has the version of package.json', () => {
  assert.equal(openapi.info.version, version)
})
