import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * By file, the faults that are put into the source to see that the simulation finds them: what each is, what stands there
 * once, and what comes in its place.
 */
export type MutantsByFile = Readonly<Record<string, readonly Mutant[]>>
type Mutant = readonly [name: string, code: string, replacement: string]

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** The text of the source with a fault. @throws Error if the source has changed, so that the fault does not fit */
export function applyMutant(file: string, [, code, replacement]: Mutant): string {
  const [before, after, ...others] = readFileSync(join(ROOT, file), 'utf8').split(code)
  if (after === undefined || others.length > 0) throw new Error(`${file} has not once: ${code}`)
  return `${before}${replacement}${after}`
}

/** Puts a fault into a copy of the source, and returns how many of a thousand seeds find it. */
export function countDetectingSeeds(systemName: string, file: string, mutant: Mutant): number {
  const copy = mkdtempSync(join(tmpdir(), 'plant-store-fault-'))
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
