// Creates and deletes plants of "ada" in a SQLite file until it has made 48 calls or is killed, and prints a line for each
// call and each result. At the end it kills itself, so that the WAL remains. See test/stores/sqlite-faults.slow.ts.
import { writeSync } from 'node:fs'
import process from 'node:process'
import { isUnavailable } from '../../src/plants/store.ts'
import { sqliteStore } from '../../src/stores/sqlite/sqlite-store.ts'

const [path, groups] = [process.argv[2]!, Number(process.argv[3])]
const print = (...words: unknown[]): unknown => writeSync(1, `${words.join(' ')}\n`)

try {
  const store = sqliteStore(path)
  async function call(method: 'create' | 'delete', id: bigint): Promise<void> {
    print('call', method, id)
    try {
      // Every fourth group spans several pages of the file.
      const name = (id / 4n) % 4n === 3n ? 'x'.repeat(30_000) : 'Fern'
      print(
        'result',
        method,
        id,
        await (method === 'create' ? store.create('ada', { id, name }) : store.delete('ada', id)),
      )
    } catch (error) {
      if (!isUnavailable(error)) throw error
      print('result', method, id, error.isOutcomeUnknown ? 'unknown' : 'refused')
    }
  }
  const first = BigInt(process.argv[4] ?? 0)
  for (let group = 0n; group < groups; group++) {
    const id = first + 4n * group
    const calls = [id, id + 1n, id + 2n].map((created) => call('create', created))
    if (group > 1n) calls.push(call('delete', id - 8n))
    await Promise.all(calls)
    try {
      store.ping()
    } catch {
      // The disk still fails.
    }
  }
  print('done')
} catch (error) {
  print(
    isUnavailable(error) || /disk I\/O error|disk is full/.test(String(error))
      ? 'not opened'
      : `fault ${String(error)}`,
  )
}
process.kill(process.pid, 'SIGKILL')
