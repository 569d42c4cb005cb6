import process from 'node:process'
import { parseArgs } from 'node:util'
import { runCrashCycles } from '../support/database/histories/crash-cycles.ts'

const { values } = parseArgs({
  options: {
    cycles: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 32) },
  },
})

console.log(`${values.cycles} cycles with seed ${values.seed}`)
const report = await runCrashCycles(Number(values.cycles), Number(values.seed))
console.log(report)
const wrong = report.lostCreates.length + report.undoneDeletes.length + report.unsent.length
if (wrong > 0 || report.creates === 0) process.exitCode = 1
