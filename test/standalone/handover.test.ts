import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import { newPath, skip } from '../support/database/sqlite-file.ts'
import { Program, startProgram } from '../support/program/program.ts'
import { withoutNetwork } from '../support/requirements.ts'
import { freePort } from '../support/wire/free-port.ts'

/** Replaces a program once while clients create plants. */
function handOver(way: '--migrate' | '--systemd'): void {
  const args = ['test/long/drains.ts', '--handover', way, '--cycles', '1', '--clients', '8']
  const { status, stdout } = spawnSync(process.execPath, [...process.execArgv, ...args], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  assert.equal(status, 0, stdout)
}

test(
  'no request is lost if a program starts on the same port, and the old one ends',
  { skip: skip || withoutNetwork },
  () => {
    handOver('--migrate')
  },
)

test('no request is lost or refused if a program ends, and another gets its socket from systemd', { skip }, () => {
  handOver('--systemd')
})

test('programs on one port have admin ports of their own', { skip }, async (t) => {
  const environment = {
    PORT: String(await freePort()),
    PLANT_STORE_URL: `sqlite:${newPath(t)}`,
    PLANT_STORE_REUSE_PORT: '1',
    PLANT_STORE_ADMIN_PORT: String(await freePort()),
  }
  await startProgram(t, environment)
  const second = new Program(environment)
  t.after(() => second.end())
  await assert.rejects(second.serving(), /PLANT_STORE_ADMIN_PORT takes a port that is free on HOST; \d+ is not/)
  assert.equal(await second.ended, 1)
})
