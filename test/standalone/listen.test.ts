import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, Server } from 'node:http'
import { basename, dirname, join, resolve } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { checkReady } from '../../src/standalone/command-line.ts'
import { findInheritedSockets, listen, getServiceTarget } from '../../src/standalone/listen.ts'
import { readAddress, readSettings } from '../../src/standalone/settings/settings.ts'
import { createSocketActivation, bindSocket } from '../support/program/bound-socket.ts'
import { Program, startProgram, TOKEN } from '../support/program/program.ts'
import { createTempDirectory, createTempFile } from '../support/temp-files.ts'
import { findFreePort } from '../support/wire/find-free-port.ts'
import { RawConnection } from '../support/wire/raw-connection.ts'
import { close, getPort } from '../support/wire/service.ts'

const SERVICE_TARGET = getServiceTarget(readSettings({ HOST: '127.0.0.1', PORT: '0' }))

/** Listens until the test ends. */
function listenUntilEnd(t: TestContext, target: typeof SERVICE_TARGET, server = createServer()): Promise<string> {
  t.after(() => close(server))
  return listen(server, target)
}

test('listen returns a URL with the actual port and a connectable address', async (t) => {
  const server = createServer()
  const url = await listenUntilEnd(t, { ...SERVICE_TARGET, host: '0' }, server)
  assert.equal(url, `http://127.0.0.1:${getPort(server)}`)
})

test('listen omits the zone ID of the host from the URL if the address is not link-local', async (t) => {
  const server = createServer()
  const url = await listenUntilEnd(t, { ...SERVICE_TARGET, host: '::1%lo' }, server)
  assert.equal(url, `http://[::1]:${getPort(server)}`)
})

test('listen percent-encodes the zone ID of a link-local address in the URL (RFC 6874)', async (t) => {
  class LinkLocal extends Server {
    override address(): ReturnType<Server['address']> {
      return { address: 'fe80::1%eth0', family: 'IPv6', port: 80 }
    }
  }
  assert.equal(
    await listenUntilEnd(t, { ...SERVICE_TARGET, host: '127.0.0.1' }, new LinkLocal()),
    'http://127.0.0.1:80',
  )
  assert.equal(
    await listenUntilEnd(t, { ...SERVICE_TARGET, host: '::1%lo' }, new LinkLocal()),
    'http://[fe80::1%25eth0]:80',
  )
})

test('--ready connects to a host with a zone ID', async (t) => {
  const port = String(await findFreePort())
  const environment = { HOST: '::1%lo', PORT: port }
  await startProgram(t, environment)
  await checkReady(readAddress(environment))
})

for (const [what, findPlace, problem, output] of [
  [
    'admin port',
    async () => ({ PORT: '0', PLANT_STORE_ADMIN_PORT: String(await findFreePort()) }),
    'PLANT_STORE_ADMIN_PORT must be a free port',
    '1\n',
  ],
  [
    'Unix socket, whose mode the umask of the primary does not change (insecure permissions)',
    (t: TestContext) => ({ HOST: join(createTempDirectory(t), 'socket') }),
    'HOST must be a path where a Unix socket can be created; a process is listening on it',
    '660\n1\n',
  ],
] as const) {
  test(`node:cluster workers do not share the ${what}`, { timeout: 60_000 }, async (t) => {
    const primary = `
      import cluster from 'node:cluster'
      import { statSync } from 'node:fs'
      const { HOST } = process.env
      cluster.setupPrimary({ exec: ${JSON.stringify(resolve('src/server.ts'))}, silent: true })
      const first = cluster.fork()
      first.process.stdout.once('data', () => {
        if (HOST) console.log((statSync(HOST).mode & 0o777).toString(8))
        const second = cluster.fork()
        const end = (result) => {
          console.log(result)
          for (const worker of [first, second]) worker.process.kill('SIGKILL')
        }
        second.process.stderr.pipe(process.stderr)
        second.process.stdout.once('data', () => end('listens'))
        second.once('exit', end)
      })`
    const { PATH, NODE_V8_COVERAGE } = process.env
    const PLANT_STORE_URL = 'postgres://ada@127.0.0.1:1/plants'
    const env = { PATH, NODE_V8_COVERAGE, PLANT_STORE_URL, ...(await findPlace(t)) }
    const args = [...process.execArgv, createTempFile(t, primary, 'primary.mjs')]
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env })
    assert.match(stderr, new RegExp(`^plant-store: ${problem}`, 'm'))
    assert.equal(stdout, output)
  })
}

// Whether a user is allowed to use or share a port depends on the machine, so the errors are simulated.
for (const [code, message] of [
  ['EACCES', 'PORT must be a port that this user can listen on; 80 is not (EACCES)'],
  ['EADDRNOTAVAIL', 'HOST must be a host name or address of this machine, and it is not (EADDRNOTAVAIL)'],
  ['ENOTSUP', 'PLANT_STORE_REUSE_PORT must be 0, because this system cannot share a port (ENOTSUP)'],
] as const) {
  test(`listen rejects with a SettingError for ${code}`, async (t) => {
    class Refused extends Server {
      override listen(): this {
        process.nextTick(() => this.emit('error', Object.assign(new Error(), { code })))
        return this
      }
    }
    const listening = listenUntilEnd(t, { ...SERVICE_TARGET, port: 80 }, new Refused())
    await assert.rejects(listening, { name: 'SettingError', message, exitStatus: 2 })
  })
}

const FIELDS = `Host: plants\r\nAuthorization: Bearer ${TOKEN}\r\n`
const LIST = `GET /plants HTTP/1.1\r\n${FIELDS}Connection: close\r\n\r\n`

const skipWithoutProc = !existsSync('/proc/self/fd') && 'this system has no /proc/self/fd'

function createSocketPath(t: TestContext): string {
  return join(createTempDirectory(t), 'http.sock')
}

function listenOnPath(server: Server, path: string, mode: string): Promise<string> {
  return listen(server, getServiceTarget(readSettings({ HOST: path, PLANT_STORE_SOCKET_MODE: mode })))
}

suite('the Unix socket file', () => {
  test('the Unix socket file has its final permissions as soon as it exists (race condition)', async (t) => {
    const path = createSocketPath(t)
    const umask = process.umask(0o027)
    t.after(() => process.umask(umask))
    const modes: unknown[] = []
    class Watched extends Server {
      override listen(...args: never[]): this {
        super.listen(...args)
        modes.push(existsSync(path), statSync((args[0]! as { path: string }).path).mode & 0o777)
        return this
      }
    }
    const server = new Watched()
    t.after(() => close(server))
    assert.equal(await listenOnPath(server, path, '606'), `unix:${path}`)
    assert.deepEqual([...modes, statSync(path).mode & 0o777], [false, 0o606, 0o606])
    assert.equal(process.umask(0), 0o027)
    assert.deepEqual(readdirSync(dirname(path)), ['http.sock'])
  })

  test('the Unix socket file has its final permissions even if an ACL overrides the umask (insecure permissions)', async (t) => {
    const path = createSocketPath(t)
    class InFolderWithAcl extends Server {
      override listen(...args: never[]): this {
        super.listen(...args)
        chmodSync((args[0]! as { path: string }).path, 0o777)
        return this
      }
    }
    const server = new InFolderWithAcl()
    t.after(() => close(server))
    await listenOnPath(server, path, '660')
    assert.equal(statSync(path).mode & 0o777, 0o660)
  })

  test('the Unix socket file has an unpredictable temporary name (socket squatting)', async (t) => {
    const names = new Set<string>()
    class Watched extends Server {
      override listen(...args: never[]): this {
        names.add(basename((args[0]! as { path: string }).path))
        return super.listen(...args)
      }
    }
    const folder = createTempDirectory(t)
    for (const file of ['a', 'b']) {
      const server = new Watched()
      t.after(() => close(server))
      await listenOnPath(server, join(folder, file), '600')
    }
    assert.equal(names.size, 2)
    for (const name of names) assert.match(name, /^\.[\w-]{11}$/)
  })

  test('the Unix socket file can have a path of maximum length', { skip: skipWithoutProc }, async (t) => {
    const folder = createTempDirectory(t)
    const long = join(folder, 'a'.repeat(100 - Buffer.byteLength(folder)))
    mkdirSync(long)
    const path = join(long, 's')
    assert.equal(Buffer.byteLength(path), 103)
    const server = createServer((_, response) => response.end('here'))
    t.after(() => close(server))
    await listenOnPath(server, path, '640')
    assert.equal(statSync(path).mode & 0o777, 0o640)
    await assert.rejects(listenOnPath(createServer(), path, '600'), { exitStatus: 1 })
    assert.deepEqual(readdirSync(long), ['s'])
    const client = await RawConnection.open(path)
    assert.match(await client.send('GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n').closed, /here$/)
    await close(server)
    assert.deepEqual(readdirSync(long), [])
  })

  test('the Unix socket file is removed when its server closes, unless another server has replaced it', async (t) => {
    const path = createSocketPath(t)
    const servers = [createServer(), createServer(), createServer()]
    const [first, second, third] = servers as [Server, Server, Server]
    t.after(() => servers.forEach((server) => server.close()))
    await listenOnPath(first, path, '600')
    rmSync(path)
    await listenOnPath(second, path, '600')
    await close(first)
    assert.ok(existsSync(path))
    await close(second)
    assert.ok(!existsSync(path))
    await listenOnPath(third, path, '600')
    rmSync(dirname(path), { recursive: true })
    writeFileSync(dirname(path), 'no folder')
    await close(third)
  })

  test('the Unix socket file is removed even if the drain timeout stops the standalone server', async (t) => {
    const path = createSocketPath(t)
    const program = await startProgram(t, { HOST: path, PLANT_STORE_DRAIN_TIMEOUT_MS: '500' })
    assert.equal(statSync(path).mode & 0o777, 0o660)
    const unfinished = await program.connect()
    unfinished.send(`POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n`)
    await (await program.connect()).send(LIST).closed
    program.child.kill('SIGTERM')
    assert.equal(await program.exited, 1)
    assert.equal(existsSync(path), false)
  })

  test('a Unix socket file left behind by a killed process is replaced', async (t) => {
    const path = createSocketPath(t)
    const killed = await startProgram(t, { HOST: path })
    killed.child.kill('SIGKILL')
    await killed.exited
    assert.ok(existsSync(path))
    const program = await startProgram(t, { HOST: path })
    assert.match(await (await program.connect()).send(LIST).closed, /^HTTP\/1\.1 200 OK\r\n[^]*\[\]$/)
  })
})

suite('invalid Unix socket paths', () => {
  const problem = 'HOST must be a path where a Unix socket can be created'

  test('listen rejects an existing path without changing the file', async (t) => {
    const [path, mine] = [createSocketPath(t), createSocketPath(t)]
    const first = createServer((_, response) => response.end())
    t.after(() => close(first))
    await listenOnPath(first, path, '600')
    writeFileSync(mine, 'mine')
    for (const taken of [path, mine]) {
      await assert.rejects(listenOnPath(createServer(), taken, '600'), {
        name: 'SettingError',
        message: `${problem}; a process is listening on it, or it is another kind of file (EEXIST)`,
        exitStatus: 1,
      })
      assert.deepEqual(readdirSync(dirname(taken)), ['http.sock'])
    }
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.equal(readFileSync(mine, 'utf8'), 'mine')
  })

  test('listen rejects a path whose parent is not a folder', async (t) => {
    const path = createSocketPath(t)
    writeFileSync(path, 'mine')
    const umask = process.umask(0o027)
    t.after(() => process.umask(umask))
    await assert.rejects(listenOnPath(createServer(), join(path, 'http.sock'), '600'), {
      name: 'SettingError',
      message: `${problem}; creating it failed (ENOTDIR)`,
      exitStatus: 2,
    })
    assert.equal(process.umask(0), 0o027)
  })
})

suite('the standalone server on a Unix socket', () => {
  test('prints curl commands, but no link to the web UI', async (t) => {
    const program = new Program({ HOST: createSocketPath(t) })
    t.after(() => program.stop())
    await program.waitUntilServing()
    // server.test.ts runs these commands.
    await program.stdout.waitForLine((line) => line.startsWith('  curl ') && line.includes('DELETE'))
    assert.doesNotMatch(program.stdout.lines.join(), /#token=/)
  })

  test('responds to --ready on the socket and to admin requests on 127.0.0.1', async (t) => {
    const path = createSocketPath(t)
    const asking = (): Promise<unknown> => new Program({ HOST: path }, ['--ready']).exited
    assert.equal(await asking(), 1)
    const program = await startProgram(t, { HOST: path, PLANT_STORE_ADMIN_PORT: '0' })
    assert.equal(await asking(), 0)
    const { admin } = await program.waitForLogEvent('start')
    assert.match(String(admin), /^http:\/\/127\.0\.0\.1:/)
    assert.equal((await fetch(`${String(admin)}/readyz`)).status, 200)
  })
})

suite('findInheritedSockets', () => {
  const service = { descriptor: 3, name: 'plants' }
  const [first, second] = [
    { descriptor: 3, name: 'admin' },
    { descriptor: 4, name: 'plants' },
  ]
  for (const [what, environment, sockets] of [
    ['returns no sockets if LISTEN_FDS is not set', {}, {}],
    ['returns no sockets if LISTEN_PID is another process', { LISTEN_PID: '8', LISTEN_FDS: '1' }, {}],
    ['returns the socket of the service', { LISTEN_FDS: '1', LISTEN_FDNAMES: 'plants' }, { service, admin: undefined }],
    ['returns a socket without a name', { LISTEN_FDS: '1' }, { service: { ...service, name: '' }, admin: undefined }],
    [
      'assigns two sockets by their names',
      { LISTEN_FDS: '2', LISTEN_FDNAMES: 'admin:plants' },
      { service: second, admin: first },
    ],
  ] as const) {
    const owned = 'LISTEN_FDS' in environment ? { LISTEN_PID: '7', ...environment } : environment
    test(what, () => assert.deepEqual(findInheritedSockets(owned, 7), sockets))
  }

  for (const [what, fds, names] of [
    ['no socket for the service', '1', 'admin'],
    ['two sockets for the service', '2', 'plants'],
    ['two sockets for the admin port', '3', 'plants:admin:admin'],
    ...['x', '0', '01', '0x1', '1.5', '3', '100000000', '4294967296'].map((fds) => [`LISTEN_FDS=${fds}`, fds, '']),
  ] as [what: string, fds: string, names: string][]) {
    test(`rejects ${what}`, () => {
      const environment = { LISTEN_PID: '7', LISTEN_FDS: fds, LISTEN_FDNAMES: names }
      const message =
        'LISTEN_FDS must pass one socket for the service, and optionally one named admin in LISTEN_FDNAMES'
      assert.throws(() => findInheritedSockets(environment, 7), { name: 'SettingError', message })
    })
  }
})

suite('the standalone server with systemd socket activation', () => {
  test('listens on the inherited sockets instead of the configured ports', async (t) => {
    const [port, adminPort] = [await findFreePort(), await findFreePort()]
    const surroundings = createSocketActivation({ plants: bindSocket(port), admin: bindSocket(adminPort) })
    const program = await startProgram(t, { PORT: '1', PLANT_STORE_ADMIN_PORT: '1' }, surroundings)
    assert.equal(program.url, `http://127.0.0.1:${port}`)
    const { admin } = await program.waitForLogEvent('start')
    assert.equal(admin, `http://127.0.0.1:${adminPort}`)
    assert.equal((await fetch(`http://127.0.0.1:${adminPort}/metrics`)).status, 200)
  })

  test('does not remove the inherited Unix socket file', async (t) => {
    const path = join(createTempDirectory(t), 'plants.sock')
    const socket = bindSocket(path)
    t.after(() => socket.close())
    const program = await startProgram(t, {}, createSocketActivation({ plants: socket }))
    assert.equal(program.url, 'unix:plants')
    const end = once(program.child, 'exit')
    program.child.kill('SIGTERM')
    assert.deepEqual(await end, [0, null])
    assert.ok(existsSync(path))
  })

  test('exits with status 2 if an inherited descriptor is not a socket', async () => {
    const surroundings = { prelude: 'export LISTEN_PID=$$ LISTEN_FDS=1; exec 3< /dev/null' }
    const program = new Program({ PLANT_STORE_TOKENS: `ada:${TOKEN}` }, [], [], surroundings)
    assert.equal(await program.exited, 2)
    assert.deepEqual(program.stderr.lines, [
      'plant-store: LISTEN_FDS must pass sockets to listen on; file descriptor 3 is not one (EINVAL)',
    ])
  })
})
