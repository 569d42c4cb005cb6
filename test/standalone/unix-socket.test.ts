import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer, Server } from 'node:http'
import { dirname, join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { listen, servicePlace } from '../../src/standalone/listening.ts'
import { readSettings } from '../../src/standalone/settings/settings.ts'
import { Program, startProgram, TOKEN } from '../support/program/program.ts'
import { withoutCommand } from '../support/requirements.ts'
import { temporaryDirectory } from '../support/temporary-file.ts'
import { close } from '../support/wire/service.ts'

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

  for (const [how, sent, status] of [
    ['is shut down', '', 0],
    ['is cut', `POST /plants HTTP/1.1\r\n${FIELDS}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n`, 1],
  ] as const) {
    test(`is gone when the program ${how}`, async (t) => {
      const path = newSocket(t)
      const program = await startProgram(t, { HOST: path, PLANT_STORE_DRAIN_TIMEOUT_MS: '500' })
      assert.equal(statSync(path).mode & 0o777, 0o660)
      if (sent !== '') (await program.connect()).send(sent)
      await (await program.connect()).send(LIST).closed
      program.child.kill('SIGTERM')
      assert.equal(await program.ended, status)
      assert.equal(existsSync(path), false)
    })
  }

  test('stays when a program ends that had it before somebody removed it', async (t) => {
    const path = newSocket(t)
    const first = await startProgram(t, { HOST: path })
    rmSync(path)
    const second = await startProgram(t, { HOST: path })
    first.child.kill('SIGTERM')
    assert.equal(await first.ended, 0)
    assert.match(await (await second.connect()).send(LIST).closed, /^HTTP\/1\.1 200 OK\r\n[^]*\[\]$/)
  })

  test('is left there if its folder may not be changed any more', async (t) => {
    const path = newSocket(t)
    const program = await startProgram(t, { HOST: path })
    rmSync(dirname(path), { recursive: true })
    writeFileSync(dirname(path), 'no folder')
    program.child.kill('SIGTERM')
    assert.equal(await program.ended, 0)
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

  test('on which somebody listens', async (t) => {
    const path = newSocket(t)
    const first = createServer((_, response) => response.end())
    t.after(() => close(first))
    await listenOnPath(first, path, '600')
    await assert.rejects(listenOnPath(createServer(), path, '600'), {
      name: 'SettingError',
      message: `${problem}; somebody listens on this one, or it is another kind of file (EEXIST)`,
      exitStatus: 1,
    })
    assert.equal(statSync(path).mode & 0o777, 0o600)
    assert.deepEqual(readdirSync(dirname(path)), ['http.sock'])
  })

  test('that is another kind of file, which stays as it is', async (t) => {
    const path = newSocket(t)
    writeFileSync(path, 'mine')
    await assert.rejects(listenOnPath(createServer(), path, '600'), /EEXIST/)
    assert.equal(readFileSync(path, 'utf8'), 'mine')
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
    assert.equal(
      program.stdout.all.some((line) => line.includes('#token=')),
      false,
    )
  })

  test('says with --ready that it is', async (t) => {
    const path = newSocket(t)
    const asking = (): Promise<unknown> => new Program({ HOST: path }, ['--ready']).ended
    assert.equal(await asking(), 1)
    await startProgram(t, { HOST: path })
    assert.equal(await asking(), 0)
  })

  test('has its admin port at 127.0.0.1', async (t) => {
    const program = await startProgram(t, { HOST: newSocket(t), PLANT_STORE_ADMIN_PORT: '0' })
    const { admin } = await program.logged('start')
    assert.match(String(admin), /^http:\/\/127\.0\.0\.1:/)
    assert.equal((await fetch(`${String(admin)}/readyz`)).status, 200)
  })
})
