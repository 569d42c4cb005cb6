import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { scrape, startWithMetrics } from '../../support/program/metrics.ts'
import { startProgram } from '../../support/program/program.ts'

suite('the admin port', () => {
  test('has the probes and the metrics, and nothing else', async (t) => {
    const { admin } = await startWithMetrics(t)
    const paths = ['/livez', '/readyz', '/metrics', '/plants', '/openapi.json', '/']
    const responses = await Promise.all(paths.map((path) => fetch(admin + path)))
    assert.deepEqual(
      responses.map(({ status }) => status),
      [200, 200, 200, 404, 404, 404],
    )
    assert.equal(responses[2]!.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
    assert.deepEqual(await responses[3]!.json(), {
      error: 40400,
      message: 'There is nothing at this path. Here are /livez, /readyz and /metrics.',
    })
    const post = await fetch(`${admin}/metrics`, { method: 'POST' })
    assert.deepEqual([post.status, post.headers.get('allow')], [405, 'GET, HEAD, OPTIONS'])
  })

  test('is the only place of the metrics', async (t) => {
    const { program } = await startWithMetrics(t)
    assert.equal((await program.fetch('/metrics')).status, 404)
  })

  test('may have a host of its own', async (t) => {
    const { admin } = await startWithMetrics(t, { PLANT_STORE_ADMIN_HOST: 'localhost' })
    assert.match(admin, /^http:\/\/localhost:/)
    assert.equal((await fetch(`${admin}/livez`)).status, 200)
  })

  test('says, in the metrics too, that the service is not ready once it shuts down', async (t) => {
    const { program, admin } = await startWithMetrics(t, { PLANT_STORE_DRAIN_DELAY_MS: '60000' })
    assert.match(await scrape(admin), /^plant_store_ready 1$/m)
    program.child.kill('SIGTERM')
    await program.logged('drain-delay')
    assert.match(await scrape(admin), /^plant_store_ready 0$/m)
    assert.equal((await fetch(`${admin}/readyz`)).status, 503)
    assert.equal((await fetch(`${admin}/livez`)).status, 200)
  })

  test('is named if another has it', async (t) => {
    const { program } = await startWithMetrics(t)
    const started = startProgram(t, { PLANT_STORE_ADMIN_PORT: String(program.port) })
    await assert.rejects(started, {
      message:
        'The program did not start: plant-store: PLANT_STORE_ADMIN_PORT takes a port that is free on HOST; ' +
        `${program.port} is not (EADDRINUSE)`,
    })
  })
})
