// Reads lists of 200,000 plants slowly: one client at 64 KiB a second, one that takes 512 KiB just before each time-out,
// which is less than it must. By hand, in five minutes:
//   npm run trickle
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { fill } from '../support/fill.ts'
import { Program, TOKEN } from '../support/program.ts'

const PLANTS = 200_000
/** On a connection within the machine, the kernel does not tell the other side of less. */
const PIECE = 512 * 1024
/** How many bytes a second a client must take: more than that in 25 s. */
const RATE = 32_768
/** Five seconds less than a stalled client has. */
const PAUSE_MS = 25_000

const plantOf = (n: number): { name: string } => ({ name: `Monstera deliciosa ${String(n).padStart(20, '0')}` })
const LIST_BYTES = PLANTS * `${JSON.stringify(plantOf(0))},`.length + 1

/** What became of a list. */
interface Read {
  readonly bytes: number
  readonly seconds: number
  readonly isWhole: boolean
}

/** Asks for the list, and takes a piece of it after each pause. */
async function read(port: number, piece: number, pauseMs: number, seconds: number): Promise<Read> {
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
  socket.write(`GET /plants HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`)
  const passed = (): number => (performance.now() - startedAt) / 1000
  let isClosed = false
  while (!isClosed && passed() < seconds) {
    due = piece
    socket.resume()
    isClosed = await Promise.race([closed, setTimeout(pauseMs, false)])
  }
  socket.destroy()
  return { bytes, seconds: Math.round(passed()), isWhole: tail.endsWith(']\r\n0\r\n\r\n') }
}

async function start(rate: number): Promise<Program> {
  const program = await Program.start({ PLANT_STORE_MIN_BYTES_PER_SECOND: String(rate) })
  await fill(program.port, TOKEN, PLANTS, plantOf)
  return program
}

const [bounded, unbounded] = [await start(RATE), await start(0)]
const cases = {
  [`64 KiB a second, where ${RATE} bytes a second are due`]: read(bounded.port, 16_384, 250, 600),
  [`512 KiB every 25 s, where ${RATE} bytes a second are due`]: read(bounded.port, PIECE, PAUSE_MS, 300),
  '512 KiB every 25 s, where nothing is due': read(unbounded.port, PIECE, PAUSE_MS, 300),
}
console.log(`Node ${process.version}, a list of ${PLANTS.toLocaleString('en')} plants, ${LIST_BYTES} bytes`)
for (const [name, result] of Object.entries(cases)) console.log(name, await result)
await Promise.all([bounded.end(), unbounded.end()])
const [steady, trickling] = await Promise.all(Object.values(cases))
process.exitCode = steady!.isWhole && !trickling!.isWhole && trickling!.seconds < 300 ? 0 : 1
