import { parseArgs } from 'node:util'
import { fuzz } from '../support/fuzz/fuzzer.ts'
import { fuzzProgram } from '../support/fuzz/program.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    standalone: { type: 'boolean', default: false },
    program: { type: 'boolean', default: false },
  },
})
const [seconds, seed] = [Number(values.seconds), Number(values.seed)]

function announce(what: string): void {
  console.log(`Fuzzing ${what} for ${seconds} s on Node ${process.versions.node}, seed ${seed}`)
}

async function runFuzz(kind: 'plain' | 'standalone'): Promise<void> {
  announce(`a ${kind} server`)
  const { sequences, answers, heapGrowth, wakings } = await fuzz(kind, seconds, seed)
  const counts = [...answers].sort(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`)
  console.log(`${sequences} sequences, each sent twice; answers by status: ${counts.join(', ')}`)
  console.log(`The heap holds ${(heapGrowth / 2 ** 20).toFixed(1)} MiB more than before.`)
  if (wakings > 0) console.log(`The guard woke ${wakings} times.`)
  console.log('No invariant was broken.')
}

/** Watches the memory of the program instead. */
async function runProgram(): Promise<void> {
  announce('the program')
  const { sequences, requests, resident } = await fuzzProgram(seconds, seed)
  console.log(`${sequences} sequences of ${requests} requests`)
  const figures = resident.map((bytes) => Math.round(bytes / 2 ** 20))
  console.log(`MiB in memory, minute by minute, and ten seconds after: ${figures.join(', ')}`)
}

await (values.program ? runProgram() : runFuzz(values.standalone ? 'standalone' : 'plain'))
