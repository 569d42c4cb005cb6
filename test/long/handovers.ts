// Replaces the program again and again while clients create plants, and counts the requests that are lost. By hand:
//   npm run handovers                        two programs on one port, of which the old one then stops
//   npm run handovers -- --migrate           the same where Linux hands on connections that the old one leaves behind
//   npm run handovers -- --systemd           one program after another on a socket that stays open
//   npm run handovers -- --slowest 0         clients that send their bodies at once, and so come more often
import { spawnSync } from 'node:child_process'
import { rmSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { DrainLoad } from '../support/program/drain-load.ts'
import { asSystemd, openSocket } from '../support/program/held-socket.ts'
import { Program } from '../support/program/program.ts'
import { freePort } from '../support/wire/free-port.ts'

const { values: options } = parseArgs({
  options: {
    cycles: { type: 'string' },
    clients: { type: 'string', default: '24' },
    /** How long a client takes to send a body, at most, in milliseconds. */
    slowest: { type: 'string', default: '300' },
    systemd: { type: 'boolean', default: false },
    migrate: { type: 'boolean', default: false },
  },
})
const CLIENTS = Number(options.clients)
const CYCLES = Number(options.cycles ?? (options.systemd ? 6 : 10))

if (options.migrate) {
  // In a network of its own: the setting is one of the whole machine, and takes root.
  const prelude = 'ip link set lo up && echo 1 > /proc/sys/net/ipv4/tcp_migrate_req && exec "$@"'
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1).filter((arg) => arg !== '--migrate')]
  const { status } = spawnSync('unshare', ['-rn', 'sh', '-c', prelude, 'sh', ...again], { stdio: 'inherit' })
  process.exit(status ?? 1)
}

const folder = mkdtempSync(join(tmpdir(), 'plant-store-'))
const port = await freePort()
const surroundings = options.systemd ? asSystemd({ plants: openSocket(port) }) : undefined
const environment = { PORT: String(port), PLANT_STORE_URL: `sqlite:${join(folder, 'plants.db')}` }

function start(): Promise<Program> {
  return surroundings === undefined
    ? Program.start({ ...environment, PLANT_STORE_REUSE_PORT: '1' })
    : Program.start(environment, [], surroundings)
}

/** Replaces a program, and gives the status with which it has ended. */
async function replace(program: Program): Promise<[next: Program, status: number | NodeJS.Signals]> {
  const next = surroundings === undefined ? await start() : undefined
  program.child.kill('SIGTERM')
  const status = await program.ended
  return [next ?? (await start()), status]
}

let program = await start()
const load = new DrainLoad(port, CLIENTS, { slowestMs: Number(options.slowest), endsIfRefused: false })
const statuses: unknown[] = []
for (let cycle = 1; cycle <= CYCLES; cycle++) {
  await load.progress(CLIENTS * 5)
  const startedAt = performance.now()
  const [next, status] = await replace(program)
  program = next
  statuses.push(status)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(
    `${cycle}: status ${status} after ${seconds} s, ${load.answered} answered, ${load.failures.length} failures`,
  )
}
await load.progress(CLIENTS)
await load.stop()
await program.end()
rmSync(folder, { recursive: true })
const { answered, failures } = load
const kinds = Object.fromEntries(
  [...new Set(failures)].map((kind) => [kind, failures.filter((one) => one === kind).length]),
)
console.log({ handovers: statuses.length, answered, failures: kinds })
if (failures.length > 0 || statuses.some((status) => status !== 0)) process.exitCode = 1
