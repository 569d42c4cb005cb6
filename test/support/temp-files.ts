import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CleanupScope } from './child-process.ts'

/** Creates a temporary directory that is deleted when the scope ends. */
export function createTempDirectory(t: CleanupScope): string {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** Writes a temporary file that is deleted when the scope ends. Returns its path. */
export function createTempFile(t: CleanupScope, content: string | Buffer, name = 'file'): string {
  const path = join(createTempDirectory(t), name)
  writeFileSync(path, content)
  return path
}
