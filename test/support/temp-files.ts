import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CleanupScope } from './child-process.ts'

/** Makes a directory that goes with the test. */
export function createTempDirectory(t: CleanupScope): string {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** Writes a file that goes with the test. */
export function createTempFile(t: CleanupScope, content: string | Buffer, name = 'file'): string {
  const path = join(createTempDirectory(t), name)
  writeFileSync(path, content)
  return path
}
