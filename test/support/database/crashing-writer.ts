// Creates and deletes plants with a SQLite store, and prints a line for each call and each result. Then it kills
// itself, so that a WAL remains. See test/stores/sqlite/faults.test.ts.
import { writeSync } from 'node:fs'
import process from 'node:process'
import { StoreUnavailableError } from '../../../src/plants/store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'

const GROUP_COUNT = 12
const LARGE_NAME = 'x'.repeat(30_000)

function printLine(...words: (string | bigint | boolean)[]): void {
  writeSync(1, `${words.join(' ')}\n`)
}

const { DatabaseSync } = process.getBuiltinModule('node:sqlite')

try {
  const handle = new DatabaseSync(process.argv[2]!)
  const store = sqliteStore(handle)
  // Small limits cause checkpoints, and spill pages before the commit, which would otherwise take thousands of plants.
  handle.exec('PRAGMA wal_autocheckpoint = 20; PRAGMA cache_size = 10')

  const call = async (kind: 'create' | 'delete', id: bigint, isLarge = false): Promise<void> => {
    printLine('call', kind, id)
    try {
      const plant = { id, name: isLarge ? LARGE_NAME : 'Monstera' }
      printLine('answer', kind, id, await (kind === 'create' ? store.create('ada', plant) : store.delete('ada', id)))
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error
      printLine('answer', kind, id, error.isOutcomeUnknown ? 'unknown' : 'refused')
    }
  }

  for (let group = 0n; group < GROUP_COUNT; group++) {
    const first = 4n * group
    const calls = [0n, 1n, 2n].map((i) => call('create', first + i, group % 4n === 3n))
    if (group > 1n) calls.push(call('delete', first - 8n))
    await Promise.all(calls)
    await Promise.allSettled([store.ping()])
  }
  printLine('done')
} catch (error) {
  const isExpected = error instanceof StoreUnavailableError || /disk I\/O error|disk is full/.test(String(error))
  printLine(isExpected ? 'not-opened' : 'fault', String(error))
}
process.kill(process.pid, 'SIGKILL')
