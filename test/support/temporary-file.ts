import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Scope } from './child.ts'

/** Makes a directory that goes with the test. */
export function temporaryDirectory(t: Scope): string {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-'))
  t.after(() => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** Writes a file that goes with the test. */
export function temporaryFile(t: Scope, content: string | Buffer, name = 'file'): string {
  const path = join(temporaryDirectory(t), name)
  writeFileSync(path, content)
  return path
}
