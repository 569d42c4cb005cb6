import { parseArgs } from 'node:util'
import { runCrashCycles } from '../support/database/histories/crash-cycles.ts'

const { values } = parseArgs({ options: { cycles: { type: 'string', default: '200' } } })

const { acknowledged, unknown } = await runCrashCycles(Number(values.cycles))
console.log(`${values.cycles} times killed, ${acknowledged} operations acknowledged, ${unknown} without an answer`)
