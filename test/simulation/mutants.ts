import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Mutants by source file: bugs to inject into the source, each of which the simulation has to detect. A mutant consists
 * of a description, a piece of code that occurs exactly once in the file, and its replacement.
 */
export type MutantsByFile = Readonly<Record<string, readonly Mutant[]>>
type Mutant = readonly [name: string, code: string, replacement: string]

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/**
 * Returns the source of a file with a mutant applied.
 * @throws Error if the code to replace is missing or not unique, because the source has changed
 */
export function applyMutant(file: string, [, code, replacement]: Mutant): string {
  const [before, after, ...others] = readFileSync(join(ROOT, file), 'utf8').split(code)
  if (after === undefined || others.length > 0) throw new Error(`${file} must contain this code exactly once: ${code}`)
  return `${before}${replacement}${after}`
}

/** Applies a mutant to a copy of the source, and returns how many of 1,000 seeds detect it. */
export function countDetectingSeeds(systemName: string, file: string, mutant: Mutant): number {
  const copy = mkdtempSync(join(tmpdir(), 'plant-store-mutant-'))
  try {
    for (const folder of ['src', 'test/simulation', 'test/support']) {
      cpSync(join(ROOT, folder), join(copy, folder), { recursive: true })
    }
    writeFileSync(join(copy, 'package.json'), '{ "type": "module" }')
    symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
    writeFileSync(join(copy, file), applyMutant(file, mutant))
    const args = ['--import', './test/support/typescript.js', 'test/simulation/run.ts', systemName, '--count']
    const { stdout, stderr, status } = spawnSync(process.execPath, args, { cwd: copy, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${mutant[0]}: ${stderr}`)
    return Number(stdout)
  } finally {
    rmSync(copy, { recursive: true })
  }
}
