import assert from 'node:assert/strict'
import { suite, test, type TestContext } from 'node:test'
import { newPath, skip } from '../support/database/sqlite-file.ts'
import { DrainLoad } from '../support/program/drain-load.ts'
import { asSystemd, openSocket } from '../support/program/held-socket.ts'
import { Program, startProgram } from '../support/program/program.ts'
import { freePort } from '../support/wire/free-port.ts'

const CLIENTS = 8

/** Replaces a program while clients create plants, and asserts that each of them is answered 200. */
async function replaceUnderLoad(t: TestContext, port: number, replace: () => Promise<Program>): Promise<void> {
  const load = new DrainLoad(port, CLIENTS, { endsIfRefused: false })
  t.after(() => load.stop())
  await load.progress(2 * CLIENTS)
  const next = await replace()
  await load.progress(2 * CLIENTS)
  await load.stop()
  next.child.kill('SIGTERM')
  assert.equal(await next.ended, 0)
  assert.deepEqual(load.failures, [])
}

async function end(program: Program): Promise<void> {
  program.child.kill('SIGTERM')
  assert.equal(await program.ended, 0)
}

suite('no request is lost if a program is replaced', () => {
  test('by one on the same port, beside which it then ends', { skip }, async (t) => {
    const port = await freePort()
    const environment = { PORT: String(port), PLANT_STORE_URL: `sqlite:${newPath(t)}`, PLANT_STORE_REUSE_PORT: '1' }
    const old = await startProgram(t, environment)
    await replaceUnderLoad(t, port, async () => {
      const next = await startProgram(t, environment)
      await end(old)
      return next
    })
  })

  test('by one that gets the socket of systemd after it has ended', async (t) => {
    const port = await freePort()
    const socket = openSocket(port)
    t.after(() => socket.close())
    const surroundings = asSystemd({ plants: socket })
    const old = await startProgram(t, {}, surroundings)
    await replaceUnderLoad(t, port, async () => {
      await end(old)
      return startProgram(t, {}, surroundings)
    })
  })
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
  assert.equal(await second.ended, 1)
  assert.match(second.stderr.all.join(), /PLANT_STORE_ADMIN_PORT takes a port that is free on HOST; \d+ is not/)
})
