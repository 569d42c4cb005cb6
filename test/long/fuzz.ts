import { parseArgs } from 'node:util'
import { fuzz } from '../support/fuzz/fuzzer.ts'

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    standalone: { type: 'boolean', default: false },
  },
})
const [seconds, seed] = [Number(values.seconds), Number(values.seed)]
const kind = values.standalone ? 'standalone' : 'plain'
console.log(`Fuzzing a ${kind} server for ${seconds} s on Node ${process.versions.node}, seed ${seed}`)
const { sequences, answers, heapGrowth, wakings } = await fuzz(kind, seconds, seed)
const counts = [...answers].sort(([a], [b]) => a - b).map(([status, count]) => `${status}: ${count}`)
console.log(`${sequences} sequences, each sent twice; answers by status: ${counts.join(', ')}`)
console.log(`The heap holds ${(heapGrowth / 2 ** 20).toFixed(1)} MiB more than before.`)
if (wakings > 0) console.log(`The guard woke ${wakings} times.`)
console.log('No invariant was broken.')
