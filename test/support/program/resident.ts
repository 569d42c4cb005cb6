import { readFileSync } from 'node:fs'

/** The bytes of a process that are in memory; on Linux. */
export function residentOf({ pid }: { readonly pid?: number | undefined }): number {
  const [, kB] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))!
  return Number(kB) * 1024
}
