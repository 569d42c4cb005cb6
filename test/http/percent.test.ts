import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodePercent } from '../../src/http/percent.ts'

/** What the platform makes of it; undefined if it refuses. */
function decodeURIComponentOf(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

const ASCII = ['', 'plants', '%', '%%', '%2', '%zz', '%70lants', '%2F', '%252F', '%00', 'a%20b%20c', '100%', '%u0041']
const OTHERS = ['é', '%C3%A9', '%c3%a9', '%C3', '%C3%', '%C3x%A9', '%A9', '%C0%AF', '%ED%A0%80', '%F0%9F%8C%B1']

for (const text of [...ASCII, ...OTHERS, '%F4%90%80%80', '%FF']) {
  test(`decodes "${text}" as the platform does`, () => {
    assert.equal(decodePercent(text), decodeURIComponentOf(text))
  })
}
