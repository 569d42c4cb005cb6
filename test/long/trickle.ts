// Reads lists of 200,000 plants slowly: at 64 KiB and at 60 kB a second, which must bring them whole, and at 300 bytes
// a second, which must end. By hand, in five minutes:
//   npm run trickle
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { fill } from '../support/database/fill.ts'
import { Program, TOKEN } from '../support/program/program.ts'

const PLANTS = 200_000

/** The owner of a list that is more than the kernel takes for a client. */
const BOB = 'Ym9i'
const LARGE = { name: 'x'.repeat(50_000) }

const plantOf = (n: number): { name: string } => ({ name: `Monstera deliciosa ${String(n).padStart(20, '0')}` })
const LIST_BYTES = PLANTS * `${JSON.stringify(plantOf(0))},`.length + 1

/** Asks for the list, and takes a piece of it after each pause. After `maxSeconds` it takes what is left. */
async function read(port: number, piece: number, pauseMs: number, maxSeconds: number, token = TOKEN) {
  const chunk = Buffer.alloc(Math.min(piece, 16_384))
  let [bytes, due, tail] = [0, 0, '']
  const socket = connect({
    port,
    host: '127.0.0.1',
    // Node reads so much at a time, and only while this says so.
    onread: {
      buffer: chunk,
      callback(length) {
        bytes += length
        due -= length
        tail = (tail + chunk.toString('latin1', 0, length)).slice(-10)
        return due > 0
      },
    },
  })
  await once(socket, 'connect')
  const startedAt = performance.now()
  const closed = new Promise<boolean>((resolve) => socket.on('error', () => undefined).on('close', () => resolve(true)))
  socket.write(`GET /plants HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  const passed = (): number => (performance.now() - startedAt) / 1000
  let isClosed = false
  while (!isClosed && passed() < maxSeconds) {
    due = piece
    socket.resume()
    isClosed = await Promise.race([closed, setTimeout(pauseMs, false)])
  }
  const seconds = Math.round(passed())
  // What a client that was cut has not taken yet is still here: only reading all of it shows that the rest is missing.
  due = Infinity
  socket.resume()
  await closed
  return { bytes, seconds, isWhole: tail.endsWith(']\r\n0\r\n\r\n') }
}

const program = await Program.start({ PLANT_STORE_TOKENS: `ada:${TOKEN},bob:${BOB}` })
await fill(program.port, TOKEN, PLANTS, plantOf)
await fill(program.port, BOB, 1000, () => LARGE)
const cases = {
  '64 KiB a second': read(program.port, 16_384, 250, 600),
  '60 kB a second': read(program.port, 15_000, 250, 600),
  '300 bytes a second': read(program.port, 300, 1000, 180, BOB),
}
console.log(`Node ${process.version}, a list of ${PLANTS.toLocaleString('en')} plants, ${LIST_BYTES} bytes`)
for (const [name, result] of Object.entries(cases)) console.log(name, await result)
await program.end()
const [steady, slower, trickling] = await Promise.all(Object.values(cases))
const isRight = steady!.isWhole && slower!.isWhole && !trickling!.isWhole
process.exitCode = isRight ? 0 : 1
