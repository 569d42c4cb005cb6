/** Changes the file of tokens of the program under load, and says which requests were answered as they must not be. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Program } from '../support/program/program.ts'
import { findWrong, rotate, RotationLoad, TokenSecret } from '../support/program/rotation-load.ts'

const { values } = parseArgs({
  options: {
    changes: { type: 'string', default: '20' },
    rate: { type: 'string', default: '1000' },
    // Otherwise the program finds each change by itself.
    signal: { type: 'boolean', default: false },
  },
})

const directory = mkdtempSync(join(tmpdir(), 'plant-store-'))
const secret = new TokenSecret(directory, 'ada:always\nada:token0')
const program = await Program.start({ PLANT_STORE_TOKENS_FILE: secret.path })

const [graceMs, betweenMs] = values.signal ? [200, 500] : [10_500, 11_000]
const rotation = rotate(secret, Number(values.changes))
const startedAt = performance.now()
const load = new RotationLoad(program.port, Number(values.rate), () => rotation.asked)
while (rotation.next()) {
  if (values.signal) program.child.kill('SIGHUP')
  await setTimeout(betweenMs)
}
await load.stop()
const seconds = (performance.now() - startedAt) / 1000
await program.end()
rmSync(directory, { recursive: true })

const wrong = findWrong(load.asks, rotation.terms, (changedAt) => changedAt + graceMs)
const { goods, wrongs } = rotation
console.log(`${goods} good changes and ${wrongs} wrong ones in ${seconds.toFixed(0)} s`)
console.log(`${load.asks.length} requests, ${Math.round(load.asks.length / seconds)} a second; ${wrong.length} wrong`)
for (const line of wrong) console.log(line)
process.exitCode = wrong.length === 0 ? 0 : 1
