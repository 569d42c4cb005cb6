import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

// Each file runs in its own process, so that no benchmark affects the optimizations or the garbage collection of
// another.
const FILES = ['json.js', 'bearer.js', 'encode.js', 'memory.js', 'million.ts', 'start.ts']

const names = FILES.map((file) => file.slice(0, file.indexOf('.')))
const requestedNames = process.argv.slice(2)
const unknownName = requestedNames.find((name) => !names.includes(name))
if (unknownName !== undefined) {
  console.error(`Unknown microbenchmark "${unknownName}". Use one of ${names.join(', ')}.`)
  process.exit(2)
}

console.log(`node ${process.version}; CPU time of one operation, and its ratio to the first row of its group`)
for (const [i, file] of FILES.entries()) {
  if (requestedNames.length > 0 && !requestedNames.includes(names[i] ?? '')) continue
  const path = fileURLToPath(new URL(file, import.meta.url))
  const { status } = spawnSync(process.execPath, ['--import', 'tsx', path], { stdio: 'inherit' })
  if (status !== 0) process.exit(1)
}
