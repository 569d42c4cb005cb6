// Ends the program again and again while clients create plants, and counts the requests that are lost. By hand:
//   npm run drains                       a client that comes too late is refused, which is no loss
//   npm run drains -- --nginx            behind nginx, with a second program: nobody may notice anything
//   npm run handovers                    the next program begins on the same port before the old one ends
//   npm run handovers -- --migrate       the same where Linux hands on connections that the old one leaves behind
//   npm run handovers -- --systemd       one program after another on a socket that stays open
//   npm run handovers -- --slowest 0     clients that send their bodies at once, and so come more often
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { runByHand, type Scope } from '../support/child.ts'
import { DrainLoad } from '../support/program/drain-load.ts'
import { asSystemd, openSocket } from '../support/program/held-socket.ts'
import { Program } from '../support/program/program.ts'
import { temporaryDirectory } from '../support/temporary-file.ts'
import { freePort } from '../support/wire/free-port.ts'
import { startNginx } from '../support/wire/proxies.ts'

const { values: options } = parseArgs({
  options: {
    cycles: { type: 'string', default: '20' },
    clients: { type: 'string', default: '24' },
    /** How long a client takes to send a body, at most, in milliseconds. */
    slowest: { type: 'string', default: '300' },
    store: { type: 'string' },
    nginx: { type: 'boolean', default: false },
    handover: { type: 'boolean', default: false },
    systemd: { type: 'boolean', default: false },
    migrate: { type: 'boolean', default: false },
  },
})
const CYCLES = Number(options.cycles)
const CLIENTS = Number(options.clients)
const LOAD = { slowestMs: Number(options.slowest), endsIfRefused: !options.nginx && !options.handover }

if (options.migrate) {
  // In a network of its own: the setting is one of the whole machine, and takes root.
  const prelude = 'ip link set lo up && echo 1 > /proc/sys/net/ipv4/tcp_migrate_req && exec "$@"'
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1).filter((arg) => arg !== '--migrate')]
  const { status } = spawnSync('unshare', ['-rn', 'sh', '-c', prelude, 'sh', ...again], { stdio: 'inherit' })
  process.exit(status ?? 1)
}

const report = { drains: 0, answered: 0, failures: [] as string[], badExits: 0, slowestSeconds: 0 }

async function drain({ child, ended }: Program): Promise<void> {
  const startedAt = performance.now()
  child.kill('SIGTERM')
  const status = await ended
  const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(1))
  report.slowestSeconds = Math.max(report.slowestSeconds, seconds)
  if (status !== 0) report.badExits++
  console.log(`drain ${++report.drains}: status ${status} after ${seconds} s`)
}

function note({ answered, failures }: DrainLoad): void {
  report.answered += answered
  report.failures.push(...failures)
}

async function drainAlone(start: () => Promise<Program>): Promise<void> {
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    const program = await start()
    const load = new DrainLoad(program.port, CLIENTS, LOAD)
    await load.progress(CLIENTS * 5)
    await drain(program)
    await load.ended
    note(load)
  }
}

/** Has clients of one port go on while what listens there is replaced. */
async function drainBehind(port: number, replace: (cycle: number) => Promise<void>): Promise<void> {
  const load = new DrainLoad(port, CLIENTS, LOAD)
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    await load.progress(CLIENTS * 5)
    await replace(cycle)
  }
  await load.progress(CLIENTS)
  await load.stop()
  note(load)
}

async function drainBehindNginx(t: Scope, port: number, start: (port: number) => Promise<Program>): Promise<void> {
  const ports = [await freePort(), await freePort()] as const
  const programs = [await start(ports[0]), await start(ports[1])]
  // With the buffering of requests nginx would send each at once. Without max_fails it goes on asking a program that it
  // found stopped, and does not learn of the next stop before it happens.
  const configuration = `
    upstream plants {
      server 127.0.0.1:${ports[0]} max_fails=0;
      server 127.0.0.1:${ports[1]} max_fails=0;
      keepalive 8;
    }
    server {
      listen 127.0.0.1:${port};
      keepalive_requests 1000000;
      location / {
        proxy_pass http://plants;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_request_buffering off;
      }
    }`
  await startNginx(t, port, configuration)
  await drainBehind(port, async (cycle) => {
    await drain(programs[cycle % 2]!)
    programs[cycle % 2] = await start(ports[cycle % 2]!)
  })
}

await runByHand(async (t) => {
  const port = await freePort()
  const file = `sqlite:${join(temporaryDirectory(t), 'plants.db')}`
  const environment = {
    PLANT_STORE_URL: options.store ?? (options.handover ? file : 'memory:'),
    PLANT_STORE_REUSE_PORT: options.handover && !options.systemd ? '1' : '0',
  }
  const surroundings = options.systemd ? asSystemd({ plants: openSocket(port) }) : undefined

  async function start(port: number): Promise<Program> {
    const program = await Program.start({ ...environment, PORT: String(port) }, [], surroundings)
    t.after(() => program.end())
    return program
  }

  if (options.nginx) {
    await drainBehindNginx(t, port, start)
  } else if (options.handover) {
    let program = await start(port)
    await drainBehind(port, async () => {
      const next = options.systemd ? undefined : await start(port)
      await drain(program)
      program = next ?? (await start(port))
    })
  } else {
    await drainAlone(() => start(0))
  }
  console.log(report)
  if (report.failures.length + report.badExits > 0 || report.answered === 0) process.exitCode = 1
})
