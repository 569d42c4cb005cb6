// Reads long lists slowly: 200,000 plants at 64 KiB/s and at 60 kB/s, which must complete, and large plants at
// 300 bytes/s, which must be disconnected. Run it manually; it runs for about five minutes:
//   npm run slow-readers
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { createPlants } from '../support/database/create-plants.ts'
import { Program, TOKEN } from '../support/program/program.ts'

const PLANT_COUNT = 200_000

/** The token of an owner whose list exceeds the socket buffers of the kernel. */
const BOB_TOKEN = 'Ym9i'
const LARGE_PLANT = { name: 'x'.repeat(50_000) }

const createPlant = (n: number): { name: string } => ({ name: `Monstera deliciosa ${String(n).padStart(20, '0')}` })
const LIST_BYTES = PLANT_COUNT * `${JSON.stringify(createPlant(0))},`.length + 1

/** Requests a list, and reads a chunk of it after each pause. After `maxSeconds`, reads the rest without pauses. */
async function readSlowly(port: number, chunkBytes: number, pauseMs: number, maxSeconds: number, token = TOKEN) {
  const buffer = Buffer.alloc(Math.min(chunkBytes, 16_384))
  let [bytes, allowance, tail] = [0, 0, '']
  const socket = connect({
    port,
    host: '127.0.0.1',
    // Node reads at most one buffer at a time, and pauses when the callback returns false.
    onread: {
      buffer,
      callback(length) {
        bytes += length
        allowance -= length
        tail = (tail + buffer.toString('latin1', 0, length)).slice(-10)
        return allowance > 0
      },
    },
  })
  await once(socket, 'connect')
  const startedAt = performance.now()
  const closed = new Promise<boolean>((resolve) => socket.on('error', () => undefined).on('close', () => resolve(true)))
  socket.write(`GET /plants HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  const elapsedSeconds = (): number => (performance.now() - startedAt) / 1000
  let isClosed = false
  while (!isClosed && elapsedSeconds() < maxSeconds) {
    allowance = chunkBytes
    socket.resume()
    isClosed = await Promise.race([closed, setTimeout(pauseMs, false)])
  }
  const seconds = Math.round(elapsedSeconds())
  // If the server has closed the connection, unread data is still buffered here. Read it all to see whether the list is
  // complete.
  allowance = Infinity
  socket.resume()
  await closed
  return { bytes, seconds, isComplete: tail.endsWith(']\r\n0\r\n\r\n') }
}

const program = await Program.start({ PLANT_STORE_TOKENS: `ada:${TOKEN},bob:${BOB_TOKEN}` })
await createPlants(program.port, TOKEN, PLANT_COUNT, createPlant)
await createPlants(program.port, BOB_TOKEN, 1000, () => LARGE_PLANT)
const cases = {
  '64 KiB a second': readSlowly(program.port, 16_384, 250, 600),
  '60 kB a second': readSlowly(program.port, 15_000, 250, 600),
  '300 bytes a second': readSlowly(program.port, 300, 1000, 180, BOB_TOKEN),
}
console.log(`Node ${process.version}, a list of ${PLANT_COUNT.toLocaleString('en')} plants, ${LIST_BYTES} bytes`)
for (const [name, result] of Object.entries(cases)) console.log(name, await result)
await program.stop()
const [steady, slower, trickling] = await Promise.all(Object.values(cases))
const isExpected = steady!.isComplete && slower!.isComplete && !trickling!.isComplete
process.exitCode = isExpected ? 0 : 1
