// Repeatedly stops the program while clients create plants, and counts the lost requests. Run it manually:
//   npm run drains                       connections that arrive after the drain are refused, which isn't a loss
//   npm run drains -- --nginx            behind nginx with a second program, every request must succeed
//   npm run handovers                    the next program starts on the same port before the old one stops
//   npm run handovers -- --migrate       the same, but Linux migrates queued connections (tcp_migrate_req)
//   npm run handovers -- --systemd       one program after another, on a socket that stays open
//   npm run handovers -- --slowest 0     clients send their bodies immediately, so they connect more often
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import { parseArgs } from 'node:util'
import { runWithCleanup, type CleanupScope } from '../support/child-process.ts'
import { DrainLoad } from '../support/program/drain-load.ts'
import { createSocketActivation, bindSocket } from '../support/program/bound-socket.ts'
import { Program } from '../support/program/program.ts'
import { createTempDirectory } from '../support/temp-files.ts'
import { findFreePort } from '../support/wire/find-free-port.ts'
import { startNginx } from '../support/wire/proxies.ts'

const { values: options } = parseArgs({
  options: {
    cycles: { type: 'string', default: '20' },
    clients: { type: 'string', default: '24' },
    /** The maximum time that a client takes to send a body, in milliseconds. */
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
const LOAD_OPTIONS = { slowestMs: Number(options.slowest), stopsIfRefused: !options.nginx && !options.handover }

if (options.migrate) {
  // In a separate network namespace, because the setting applies to the whole machine and requires root.
  const prelude = 'ip link set lo up && echo 1 > /proc/sys/net/ipv4/tcp_migrate_req && exec "$@"'
  const rerunCommand = [
    process.execPath,
    ...process.execArgv,
    ...process.argv.slice(1).filter((arg) => arg !== '--migrate'),
  ]
  const { status } = spawnSync('unshare', ['-rn', 'sh', '-c', prelude, 'sh', ...rerunCommand], { stdio: 'inherit' })
  process.exit(status ?? 1)
}

const report = { drains: 0, answered: 0, failures: [] as string[], badExits: 0, slowestSeconds: 0 }

async function drainProgram({ child, exited: ended }: Program): Promise<void> {
  const startedAt = performance.now()
  child.kill('SIGTERM')
  const status = await ended
  const seconds = Number(((performance.now() - startedAt) / 1000).toFixed(1))
  report.slowestSeconds = Math.max(report.slowestSeconds, seconds)
  if (status !== 0) report.badExits++
  console.log(`drain ${++report.drains}: status ${status} after ${seconds} s`)
}

function recordLoad({ succeeded: answered, failures }: DrainLoad): void {
  report.answered += answered
  report.failures.push(...failures)
}

async function drainRepeatedly(start: () => Promise<Program>): Promise<void> {
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    const program = await start()
    const load = new DrainLoad(program.port, CLIENTS, LOAD_OPTIONS)
    await load.waitForProgress(CLIENTS * 5)
    await drainProgram(program)
    await load.finished
    recordLoad(load)
  }
}

/** Keeps clients sending requests to a port while the program that listens there is replaced. */
async function replaceUnderLoad(port: number, replace: (cycle: number) => Promise<void>): Promise<void> {
  const load = new DrainLoad(port, CLIENTS, LOAD_OPTIONS)
  for (let cycle = 0; cycle < CYCLES; cycle++) {
    await load.waitForProgress(CLIENTS * 5)
    await replace(cycle)
  }
  await load.waitForProgress(CLIENTS)
  await load.stop()
  recordLoad(load)
}

async function replaceBehindNginx(
  t: CleanupScope,
  port: number,
  start: (port: number) => Promise<Program>,
): Promise<void> {
  const ports = [await findFreePort(), await findFreePort()] as const
  const programs = [await start(ports[0]), await start(ports[1])]
  // With request buffering, nginx would send each request as a whole. With max_fails=0, nginx keeps sending requests to
  // a program after it was stopped, so each stop happens under load.
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
  await replaceUnderLoad(port, async (cycle) => {
    await drainProgram(programs[cycle % 2]!)
    programs[cycle % 2] = await start(ports[cycle % 2]!)
  })
}

await runWithCleanup(async (t) => {
  const port = await findFreePort()
  const sqliteUrl = `sqlite:${join(createTempDirectory(t), 'plants.db')}`
  const environment = {
    PLANT_STORE_URL: options.store ?? (options.handover ? sqliteUrl : 'memory:'),
    PLANT_STORE_REUSE_PORT: options.handover && !options.systemd ? '1' : '0',
  }
  const launchOptions = options.systemd ? createSocketActivation({ plants: bindSocket(port) }) : undefined

  async function start(port: number): Promise<Program> {
    const program = await Program.start({ ...environment, PORT: String(port) }, [], launchOptions)
    t.after(() => program.stop())
    return program
  }

  if (options.nginx) {
    await replaceBehindNginx(t, port, start)
  } else if (options.handover) {
    let program = await start(port)
    await replaceUnderLoad(port, async () => {
      const successor = options.systemd ? undefined : await start(port)
      await drainProgram(program)
      program = successor ?? (await start(port))
    })
  } else {
    await drainRepeatedly(() => start(0))
  }
  console.log(report)
  if (report.failures.length + report.badExits > 0 || report.answered === 0) process.exitCode = 1
})
