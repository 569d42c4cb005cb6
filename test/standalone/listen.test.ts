import assert from 'node:assert/strict'
import { existsSync, lstatSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { text } from 'node:stream/consumers'
import type { IncomingMessage } from 'node:http'
import { StandaloneServer, startServer } from '../support/standalone-server.ts'
import { bindSocket, createSocketActivation } from '../support/bound-socket.ts'
import { createTempDirectory } from '../support/temp-files.ts'
import { getPort, listen } from '../support/service.ts'

async function fail(t: TestContext, environment: Record<string, string>, args: string[] = []): Promise<unknown[]> {
  const server = new StandaloneServer({ PLANT_STORE_WEB_UI: '0', ...environment }, args)
  t.after(() => server.stop())
  return [await server.exited, ...server.stderr.lines]
}

async function getLive(socketPath: string): Promise<string> {
  const [response] = (await once(request({ socketPath, path: '/livez' }).end(), 'response')) as [IncomingMessage]
  return text(response)
}

async function occupyPort(t: TestContext): Promise<string> {
  const server = createServer()
  await listen(server)
  t.after(() => server.close())
  return String(getPort(server))
}

suite('listening on a port', () => {
  test('prints a URL for clients', async (t) => {
    for (const [host, url] of [
      ['127.0.0.1', /^http:\/\/127\.0\.0\.1:\d+$/],
      ['0.0.0.0', /^http:\/\/127\.0\.0\.1:\d+$/],
      ['localhost', /^http:\/\/localhost:\d+$/],
      ['::', /^http:\/\/\[::1\]:\d+$/],
    ] as const) {
      const server = await startServer(t, { HOST: host })
      assert.match(server.url, url)
      assert.equal((await server.fetch('/livez')).status, 200)
    }
  })

  test('exits with 1 if the port is in use', async (t) => {
    const port = await occupyPort(t)
    assert.deepEqual(await fail(t, { PORT: port }), [
      1,
      `plant-store: PORT must be a free port on HOST; ${port} is in use (EADDRINUSE)`,
    ])
  })

  test('exits with 1 if the admin port is in use', async (t) => {
    const port = await occupyPort(t)
    assert.deepEqual(await fail(t, { PORT: '0', PLANT_STORE_ADMIN_PORT: port, PLANT_STORE_ADMIN_HOST: '127.0.0.1' }), [
      1,
      `plant-store: PLANT_STORE_ADMIN_PORT must be a free port on PLANT_STORE_ADMIN_HOST; ${port} is in use (EADDRINUSE)`,
    ])
  })

  test('exits with 2 if the address belongs to another machine', async (t) => {
    const [status, line] = await fail(t, { HOST: '192.0.2.1', PORT: '0' })
    assert.equal(status, 2)
    assert.equal(
      line,
      'plant-store: HOST must be a host name or address of this machine, and it is not (EADDRNOTAVAIL)',
    )
  })
})

suite('a Unix socket', () => {
  test('is accessible to the user and the group, and is removed at the end', async (t) => {
    const path = join(createTempDirectory(t), 'plants.sock')
    const server = await startServer(t, { HOST: path })
    assert.equal(server.url, `unix:${path}`)
    assert.equal(lstatSync(path).mode & 0o777, 0o660)
    assert.equal(await getLive(path), '{"status":"live"}')
    server.child.kill('SIGTERM')
    assert.equal(await server.exited, 0)
    assert.equal(existsSync(path), false)
  })

  test('replaces the socket of a process that was killed', async (t) => {
    const path = join(createTempDirectory(t), 'plants.sock')
    const killed = await startServer(t, { HOST: path })
    killed.child.kill('SIGKILL')
    await killed.exited
    assert.equal(existsSync(path), true)
    await startServer(t, { HOST: path })
    assert.equal(await getLive(path), '{"status":"live"}')
  })

  test('replaces neither the socket of a running process nor another file', async (t) => {
    const directory = createTempDirectory(t)
    const [used, file] = [join(directory, 'used.sock'), join(directory, 'file')]
    await startServer(t, { HOST: used })
    writeFileSync(file, 'a')
    const line =
      'plant-store: HOST must be a path where a Unix socket can be created; a process is listening on it, or it is another kind of file'
    for (const path of [used, file]) assert.deepEqual(await fail(t, { HOST: path }), [1, line])
    assert.equal(await getLive(used), '{"status":"live"}')
    assert.equal(existsSync(file), true)
  })

  test('can be checked with --ready', async (t) => {
    const path = join(createTempDirectory(t), 'plants.sock')
    await startServer(t, { HOST: path })
    assert.deepEqual(await fail(t, { HOST: path }, ['--ready']), [0])
  })

  test('exits with 2 if the directory is missing', async (t) => {
    assert.deepEqual(await fail(t, { HOST: '/nowhere/plants.sock' }), [
      2,
      'plant-store: HOST must be a path where a Unix socket can be created; creating it failed (EACCES)',
    ])
  })
})

suite('the first socket of systemd', () => {
  test('is used instead of HOST and PORT', async (t) => {
    const sockets = createSocketActivation({ a: bindSocket(0), b: bindSocket(0) })
    const server = await startServer(t, {}, sockets)
    assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+$/)
    assert.equal((await server.fetch('/plants')).status, 200)
  })

  test('can be a Unix socket, for which no command is printed', async (t) => {
    const path = join(createTempDirectory(t), 'plants.sock')
    const sockets = createSocketActivation({ a: bindSocket(path) })
    const demo = new StandaloneServer({ PLANT_STORE_WEB_UI: '0' }, [], [], sockets)
    t.after(() => demo.stop())
    await demo.waitUntilServing()
    assert.equal(demo.url, 'the Unix socket that systemd passed')
    await demo.stdout.waitForLine((line) => line.startsWith('No tokens are configured.'))
    assert.equal(await getLive(path), '{"status":"live"}')
    assert.doesNotMatch(demo.stdout.lines.join('\n'), /curl|export|unix:/)
  })

  test('is ignored if it was passed to another process', async (t) => {
    const server = await startServer(t, { LISTEN_PID: '1', LISTEN_FDS: '1' })
    assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+$/)
  })

  test('must be a socket', async (t) => {
    const server = new StandaloneServer({ PLANT_STORE_WEB_UI: '0' }, [], [], {
      prelude: 'export LISTEN_PID=$$ LISTEN_FDS=1; exec 3< /dev/null',
    })
    t.after(() => server.stop())
    assert.equal(await server.exited, 2)
    assert.match(
      server.stderr.lines.join(),
      /^plant-store: LISTEN_FDS must pass a socket to listen on; file descriptor 3 is not one/,
    )
  })
})
