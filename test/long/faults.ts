// What SQLite's file system does wrong, at every single call of a run: test/support/database/histories/faults.ts says
// how.
import process from 'node:process'
import { CALLS, FAULTS, runWithFault, type Fault } from '../support/database/histories/faults.ts'

interface Row {
  readonly calls: string
  readonly fault: Fault
  faults: number
  acknowledged: number
  refused: number
  unknown: number
  unknownDone: number
}

async function sweep(calls: string, fault: Fault): Promise<Row> {
  const row: Row = { calls, fault, faults: 0, acknowledged: 0, refused: 0, unknown: 0, unknownDone: 0 }
  for (let n = 1; ; n++) {
    const { isHit, problems, ...counts } = await runWithFault(calls, fault, n)
    for (const problem of problems) {
      console.error(`${calls} ${n}, ${fault}: ${problem}`)
      process.exitCode = 1
    }
    if (!isHit) return row
    row.faults++
    for (const name of ['acknowledged', 'refused', 'unknown', 'unknownDone'] as const) row[name] += counts[name]
  }
}

const rows: Row[] = []
for (const fault of FAULTS) rows.push(...(await Promise.all(CALLS.map((calls) => sweep(calls, fault)))))
console.table(rows)
const wrong = process.exitCode === 1 ? 'see above' : 'none'
console.log(`${rows.reduce((sum, { faults }) => sum + faults, 0)} faults; answers that were not true: ${wrong}`)
