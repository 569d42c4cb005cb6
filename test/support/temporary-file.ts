import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'

/** Writes a file that goes with the test. */
export function temporaryFile(t: TestContext, content: string | Buffer): string {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const path = join(directory, 'file')
  writeFileSync(path, content)
  return path
}
