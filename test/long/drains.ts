// Stops the program again and again while clients keep coming, and counts the requests that are lost. By hand:
//   npm run drains -- --cycles 60            a client that comes too late is refused, which is no loss
//   npm run drains -- --cycles 60 --nginx    behind nginx, with a second program: nobody may notice anything
import process from 'node:process'
import { parseArgs } from 'node:util'
import { DrainLoad } from '../support/program/drain-load.ts'
import { Program } from '../support/program/program.ts'
import { startNginx } from '../support/wire/proxies.ts'

const { values: options } = parseArgs({
  options: {
    cycles: { type: 'string', default: '60' },
    clients: { type: 'string', default: '24' },
    /** The time that a drain has, in milliseconds. */
    timeout: { type: 'string', default: '10000' },
    store: { type: 'string', default: 'memory:' },
    nginx: { type: 'boolean', default: false },
  },
})

const CYCLES = Number(options.cycles)
const CLIENTS = Number(options.clients)

/** Below those that the system gives to clients, so that a program finds its port free when it starts again. */
const PORTS = { nginx: 18_080, first: 18_081, second: 18_082 }

interface Drain {
  readonly status: number | NodeJS.Signals
  readonly seconds: number
}

const report = { drains: 0, answered: 0, failures: [] as string[], badExits: [] as string[], slowest: 0 }

function note({ status, seconds }: Drain, load: DrainLoad): void {
  report.drains++
  report.slowest = Math.max(report.slowest, seconds)
  if (status !== 0) report.badExits.push(`drain ${report.drains}: ${status}`)
  console.log(`drain ${report.drains}: status ${status} after ${seconds.toFixed(1)} s, failures`, load.failures)
}

function start(port: number): Promise<Program> {
  return Program.start({
    PORT: String(port),
    PLANT_STORE_URL: options.store,
    PLANT_STORE_DRAIN_TIMEOUT_MS: options.timeout,
  })
}

async function drain(program: Program): Promise<Drain> {
  const startedAt = performance.now()
  program.child.kill('SIGTERM')
  const status = await program.ended
  return { status, seconds: (performance.now() - startedAt) / 1000 }
}

async function drainAlone(): Promise<void> {
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    const program = await start(0)
    const load = new DrainLoad(program.port, CLIENTS)
    await load.progress(CLIENTS * 5)
    const drained = await drain(program)
    await load.ended
    note(drained, load)
    report.answered += load.answered
    report.failures.push(...load.failures)
  }
}

async function drainBehindNginx(): Promise<void> {
  const programs = [await start(PORTS.first), await start(PORTS.second)]
  const ends: (() => unknown)[] = []
  await startNginx({ after: (end) => ends.push(end) }, PORTS.nginx, BALANCER)
  const load = new DrainLoad(PORTS.nginx, CLIENTS)
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    await load.progress(CLIENTS * 5)
    const port = cycle % 2 === 0 ? PORTS.first : PORTS.second
    note(await drain(programs[cycle % 2]!), load)
    programs[cycle % 2] = await start(port)
  }
  await load.stop()
  Object.assign(report, { answered: load.answered, failures: load.failures })
  for (const program of programs) await program.end()
  for (const end of ends) await end()
}

/**
 * With the buffering of requests nginx would send each at once. Without max_fails it goes on asking a program that it
 * found stopped, and does not learn of the next stop before it happens.
 */
const BALANCER = `
  upstream plants {
    server 127.0.0.1:${PORTS.first} max_fails=0;
    server 127.0.0.1:${PORTS.second} max_fails=0;
    keepalive 8;
  }
  server {
    listen 127.0.0.1:${PORTS.nginx};
    keepalive_requests 1000000;
    location / {
      proxy_pass http://plants;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_request_buffering off;
    }
  }`

await (options.nginx ? drainBehindNginx() : drainAlone())
console.log(report)
if (report.failures.length > 0 || report.badExits.length > 0 || report.answered === 0) process.exitCode = 1
