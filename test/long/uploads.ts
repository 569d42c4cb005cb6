// Sends uploads of 20 MB that are refused while they are sent, beside processes that take all the CPU time, and counts
// the clients that saw why. By hand:
//   npm run uploads                            60 tries of each client, beside three such processes
//   npm run uploads -- --tries=20 --spin=0     fewer of them, on a machine that is idle
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { loadavg, setPriority } from 'node:os'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { nextMessage, startAgain } from '../support/program/again.ts'
import { Program } from '../support/program/program.ts'
import { createService } from '../support/wire/service.ts'
import { REFUSALS, UPLOADS } from '../support/wire/uploads.ts'

const { values: options } = parseArgs({
  options: {
    tries: { type: 'string', default: '60' },
    /** How many processes spin beside. */
    spin: { type: 'string', default: '3' },
    /** Only these clients. */
    client: { type: 'string', multiple: true, default: Object.keys(UPLOADS) },
    /** What this process does for another one. */
    role: { type: 'string' },
    port: { type: 'string', default: '0' },
  },
})

/** What a client has seen. */
interface Seen {
  readonly client: string
  readonly error: number
  /** Errors of the answers, and of what went wrong without one, each with how often it came. */
  readonly counts: Readonly<Record<string, number>>
}

/** A server of Node alone. */
function serve(): void {
  process.on('disconnect', () => process.exit())
  const authenticate = (token: string): string | null => (token === 'refused' ? null : token)
  const server = createServer(createService({ authenticate }))
  server.listen(0, '127.0.0.1', () => process.send!((server.address() as AddressInfo).port))
}

/** Says how a try ended that was not answered. */
function failureOf(error: unknown): string {
  const { code, cause } = error as { code?: string; cause?: { code?: string } }
  return code ?? cause?.code ?? String(error)
}

async function send(port: number): Promise<void> {
  // Others first, as on a busy machine.
  setPriority(10)
  for (const client of options.client) {
    const { upload, skip } = UPLOADS[client]!
    if (skip !== false) console.log(`${client}: ${skip}`)
    for (const refusal of skip === false ? REFUSALS : []) {
      const counts: Record<string, number> = {}
      for (let i = 0; i < Number(options.tries); i++) {
        const seen = await upload(port, refusal).catch(failureOf)
        counts[seen] = (counts[seen] ?? 0) + 1
      }
      process.send!({ client, error: refusal.error, counts } satisfies Seen)
    }
  }
  process.disconnect()
}

async function run(): Promise<void> {
  const spinning = Array.from({ length: Number(options.spin) }, () => spawn(process.execPath, ['-e', 'for (;;);']))
  const program = await Program.start({ PLANT_STORE_TOKENS: 'ada:ada' })
  const plain = startAgain(import.meta.url, '--role', 'serve')
  const hosts = { 'the program': program.port, 'node:http': await nextMessage<number>(plain) }
  console.log(`Node ${process.version}, load average ${loadavg()[0]!.toFixed(1)}`)
  for (const [host, port] of Object.entries(hosts)) {
    const clients = startAgain(import.meta.url, '--role', 'send', '--port', String(port))
    clients.on('message', ({ client, error, counts }: Seen) => {
      console.log(`${host}, ${client}, ${error}:`, counts)
      if (counts[error] !== Number(options.tries)) process.exitCode = 1
    })
    await once(clients, 'exit')
  }
  plain.disconnect()
  await program.end()
  for (const child of spinning) child.kill()
}

if (options.role === 'serve') serve()
else if (options.role === 'send') await send(Number(options.port))
else await run()
