import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, Server } from 'node:http'
import { dirname, join, resolve } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { askReady } from '../../src/standalone/command-line.ts'
import { inheritedSockets, listen, servicePlace } from '../../src/standalone/listening.ts'
import { readAddress, readSettings } from '../../src/standalone/settings/settings.ts'
import { asSystemd, openSocket } from '../support/program/held-socket.ts'
import { Program, startProgram, TOKEN } from '../support/program/program.ts'
import { withoutCommand } from '../support/requirements.ts'
import { temporaryDirectory, temporaryFile } from '../support/temporary-file.ts'
import { freePort } from '../support/wire/free-port.ts'
import { close, portOf } from '../support/wire/service.ts'

const SERVICE = servicePlace(readSettings({ HOST: '127.0.0.1', PORT: '0' }))

/** Lets a server listen until the test ends. */
function listenAt(t: TestContext, place: typeof SERVICE, server = createServer()): Promise<string> {
  t.after(() => close(server))
  return listen(server, place)
}

test('the URL of a server has its real port, and the address that its host means', async (t) => {
  const server = createServer()
  const url = await listenAt(t, { ...SERVICE, host: '0' }, server)
  assert.equal(url, `http://127.0.0.1:${portOf(server)}`)
})

test('prints the address of a host with a zone ID that the address does not need', async (t) => {
  const server = createServer()
  const url = await listenAt(t, { ...SERVICE, host: '::1%lo' }, server)
  assert.equal(url, `http://[::1]:${portOf(server)}`)
})

test('writes the zone ID of a link-local address as RFC 6874 does', async (t) => {
  class LinkLocal extends Server {
    override address(): ReturnType<Server['address']> {
      return { address: 'fe80::1%eth0', family: 'IPv6', port: 80 }
    }
  }
  assert.equal(await listenAt(t, { ...SERVICE, host: '127.0.0.1' }, new LinkLocal()), 'http://127.0.0.1:80')
  assert.equal(await listenAt(t, { ...SERVICE, host: '::1%lo' }, new LinkLocal()), 'http://[fe80::1%25eth0]:80')
})

test('--ready finds a server whose host has a zone ID', async (t) => {
  const port = String(await freePort())
  const environment = { HOST: '::1%lo', PORT: port }
  await startProgram(t, environment)
  await askReady(readAddress(environment))
})

for (const [what, findPlace, problem, output] of [
  [
    'admin port',
    async () => ({ PORT: '0', PLANT_STORE_ADMIN_PORT: String(await freePort()) }),
    'PLANT_STORE_ADMIN_PORT takes a port that is free',
    '1\n',
  ],
  [
    'Unix socket',
    (t: TestContext) => ({ HOST: join(temporaryDirectory(t), 'socket') }),
    'HOST takes the path of a Unix socket that can be made; somebody listens on this one',
    '660\n1\n',
  ],
] as const) {
  test(`workers of node:cluster do not share the ${what}`, { timeout: 60_000 }, async (t) => {
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
    const args = [...process.execArgv, temporaryFile(t, primary, 'primary.mjs')]
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env })
    assert.match(stderr, new RegExp(`^plant-store: ${problem}`, 'm'))
    assert.equal(stdout, output)
  })
}

// Whether a user may take or share a port depends on the machine.
for (const [code, message] of [
  ['EACCES', 'PORT takes a port that is free on HOST; 80 is not (EACCES)'],
  ['EADDRNOTAVAIL', 'HOST takes an address of this machine, and this is not one (EADDRNOTAVAIL)'],
  ['ENOTSUP', 'PLANT_STORE_REUSE_PORT takes 0 on this system (ENOTSUP)'],
] as const) {
  test(`a server that cannot listen says so if the system refuses with ${code}`, async (t) => {
    class Refused extends Server {
      override listen(): this {
        process.nextTick(() => this.emit('error', Object.assign(new Error(), { code })))
        return this
      }
    }
    const listening = listenAt(t, { ...SERVICE, port: 80 }, new Refused())
    await assert.rejects(listening, { name: 'SettingError', message, exitStatus: 2 })
  })
}

const FIELDS = `Host: plants\r\nAuthorization: Bearer ${TOKEN}\r\n`
const LIST = `GET /plants HTTP/1.1\r\n${FIELDS}Connection: close\r\n\r\n`

function newSocket(t: TestContext): string {
  return join(temporaryDirectory(t), 'http.sock')
}

function listenOnPath(server: Server, path: string, mode: string): Promise<string> {
  return listen(server, servicePlace(readSettings({ HOST: path, PLANT_STORE_SOCKET_MODE: mode })))
}

suite('the file of a Unix socket', () => {
  test('has its permissions as soon as it is there', async (t) => {
    const path = newSocket(t)
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

  test('is gone when its server closes, unless another server has it by then, or its folder is none any more', async (t) => {
    const path = newSocket(t)
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

  test('is gone when the program is cut', async (t) => {
    const path = newSocket(t)
    const program = await startProgram(t, { HOST: path, PLANT_STORE_DRAIN_TIMEOUT_MS: '500' })
    assert.equal(statSync(path).mode & 0o777, 0o660)
    const unfinished = await program.connect()
    unfinished.send(`POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n`)
    await (await program.connect()).send(LIST).closed
    program.child.kill('SIGTERM')
    assert.equal(await program.ended, 1)
    assert.equal(existsSync(path), false)
  })

  test('is replaced if a program that was killed has left it', async (t) => {
    const path = newSocket(t)
    const killed = await startProgram(t, { HOST: path })
    killed.child.kill('SIGKILL')
    await killed.ended
    assert.ok(existsSync(path))
    const program = await startProgram(t, { HOST: path })
    assert.match(await (await program.connect()).send(LIST).closed, /^HTTP\/1\.1 200 OK\r\n[^]*\[\]$/)
  })
})

suite('a server does not start on a path', () => {
  const problem = 'HOST takes the path of a Unix socket that can be made'

  test('on which somebody listens, or that is another kind of file, which stays as it is', async (t) => {
    const [path, mine] = [newSocket(t), newSocket(t)]
    const first = createServer((_, response) => response.end())
    t.after(() => close(first))
    await listenOnPath(first, path, '600')
    writeFileSync(mine, 'mine')
    for (const taken of [path, mine]) {
      await assert.rejects(listenOnPath(createServer(), taken, '600'), {
        name: 'SettingError',
        message: `${problem}; somebody listens on this one, or it is another kind of file (EEXIST)`,
        exitStatus: 1,
      })
      assert.deepEqual(readdirSync(dirname(taken)), ['http.sock'])
    }
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.equal(readFileSync(mine, 'utf8'), 'mine')
  })

  test('in a folder that is none', async (t) => {
    const path = newSocket(t)
    writeFileSync(path, 'mine')
    const umask = process.umask(0o027)
    t.after(() => process.umask(umask))
    await assert.rejects(listenOnPath(createServer(), join(path, 'http.sock'), '600'), {
      name: 'SettingError',
      message: `${problem}, and this one cannot (ENOTDIR)`,
      exitStatus: 2,
    })
    assert.equal(process.umask(0), 0o027)
  })
})

suite('a program on a Unix socket', () => {
  test('prints a curl line that creates a plant', { skip: withoutCommand('curl') }, async (t) => {
    const program = new Program({ HOST: newSocket(t) })
    t.after(() => program.end())
    await program.serving()
    const line = await program.stdout.find((line) => line.startsWith('  curl '))
    const created = execFileSync('sh', ['-c', `${line!} --silent`], { encoding: 'utf8' })
    assert.equal(created, '{"name":"Monstera deliciosa","tag":"tropical"}')
    assert.doesNotMatch(program.stdout.all.join(), /#token=/)
  })

  test('says with --ready that it is, and has its admin port at 127.0.0.1', async (t) => {
    const path = newSocket(t)
    const asking = (): Promise<unknown> => new Program({ HOST: path }, ['--ready']).ended
    assert.equal(await asking(), 1)
    const program = await startProgram(t, { HOST: path, PLANT_STORE_ADMIN_PORT: '0' })
    assert.equal(await asking(), 0)
    const { admin } = await program.logged('start')
    assert.match(String(admin), /^http:\/\/127\.0\.0\.1:/)
    assert.equal((await fetch(`${String(admin)}/readyz`)).status, 200)
  })
})

suite('the sockets of systemd', () => {
  const service = { descriptor: 3, name: 'plants' }
  const [first, second] = [
    { descriptor: 3, name: 'admin' },
    { descriptor: 4, name: 'plants' },
  ]
  for (const [what, environment, sockets] of [
    ['are none without variables', {}, {}],
    ['are none if they are for another process', { LISTEN_PID: '8', LISTEN_FDS: '1' }, {}],
    ['are that of the service', { LISTEN_FDS: '1', LISTEN_FDNAMES: 'plants' }, { service, admin: undefined }],
    ['need no name', { LISTEN_FDS: '1' }, { service: { ...service, name: '' }, admin: undefined }],
    ['are known by names', { LISTEN_FDS: '2', LISTEN_FDNAMES: 'admin:plants' }, { service: second, admin: first }],
  ] as const) {
    const owned = 'LISTEN_FDS' in environment ? { LISTEN_PID: '7', ...environment } : environment
    test(what, () => assert.deepEqual(inheritedSockets(owned, 7), sockets))
  }

  for (const [what, fds, names] of [
    ['there is none for the service', '1', 'admin'],
    ['there are two for the service', '2', 'plants'],
    ['there are two for the admin port', '3', 'plants:admin:admin'],
    ...['x', '0', '01', '0x1', '1.5', '3', '100000000', '4294967296'].map((fds) => [`there are ${fds}`, fds, '']),
  ] as [what: string, fds: string, names: string][]) {
    test(`are refused if ${what}`, () => {
      const environment = { LISTEN_PID: '7', LISTEN_FDS: fds, LISTEN_FDNAMES: names }
      const message = 'LISTEN_FDS takes one socket, and one more if LISTEN_FDNAMES calls it admin'
      assert.throws(() => inheritedSockets(environment, 7), { name: 'SettingError', message })
    })
  }
})

suite('a program that systemd gives its sockets', () => {
  test('listens on them, whatever its settings say', async (t) => {
    const [port, adminPort] = [await freePort(), await freePort()]
    const surroundings = asSystemd({ plants: openSocket(port), admin: openSocket(adminPort) })
    const program = await startProgram(t, { PORT: '1', PLANT_STORE_ADMIN_PORT: '1' }, surroundings)
    assert.equal(program.url, `http://127.0.0.1:${port}`)
    const { admin } = await program.logged('start')
    assert.equal(admin, `http://127.0.0.1:${adminPort}`)
    assert.equal((await fetch(`http://127.0.0.1:${adminPort}/metrics`)).status, 200)
  })

  test('leaves the file of a Unix socket where it is', async (t) => {
    const path = join(temporaryDirectory(t), 'plants.sock')
    const socket = openSocket(path)
    t.after(() => socket.close())
    const program = await startProgram(t, {}, asSystemd({ plants: socket }))
    assert.equal(program.url, 'unix:plants')
    const end = once(program.child, 'exit')
    program.child.kill('SIGTERM')
    assert.deepEqual(await end, [0, null])
    assert.ok(existsSync(path))
  })

  test('ends with status 2 if one is no socket', async () => {
    const surroundings = { prelude: 'export LISTEN_PID=$$ LISTEN_FDS=1; exec 3< /dev/null' }
    const program = new Program({ PLANT_STORE_TOKENS: `ada:${TOKEN}` }, [], [], surroundings)
    assert.equal(await program.ended, 2)
    assert.deepEqual(program.stderr.all, [
      'plant-store: LISTEN_FDS takes sockets to listen on, and descriptor 3 is none (EINVAL)',
    ])
  })
})
