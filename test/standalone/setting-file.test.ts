import assert from 'node:assert/strict'
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { startServer, type StandaloneServer } from '../support/standalone-server.ts'
import { createTempDirectory } from '../support/temp-files.ts'

async function startWithFile(t: TestContext): Promise<{ server: StandaloneServer; path: string }> {
  const path = join(createTempDirectory(t), 'tokens')
  writeFileSync(path, 'ada:YWRh\n')
  return { server: await startServer(t, { PLANT_STORE_TOKENS_FILE: path }), path }
}

const statusOf = async (server: StandaloneServer, token: string): Promise<number> =>
  (await server.fetch('/plants', {}, token)).status

suite('the token file', () => {
  test('is reread on SIGHUP', async (t) => {
    const { server, path } = await startWithFile(t)
    assert.deepEqual([await statusOf(server, 'YWRh'), await statusOf(server, 'Ym9i')], [200, 401])
    writeFileSync(path, 'bob:Ym9i\neve:ZXZl read\n')
    server.child.kill('SIGHUP')
    const { level, tokens } = await server.waitForLogEvent('tokens-read')
    assert.deepEqual([level, tokens], ['info', 2])
    assert.deepEqual([await statusOf(server, 'YWRh'), await statusOf(server, 'Ym9i')], [401, 200])
  })

  test('changes nothing while it is missing, empty or invalid', async (t) => {
    const { server, path } = await startWithFile(t)
    const changes: readonly (readonly [change: () => void, reason: string])[] = [
      [() => rmSync(path), 'PLANT_STORE_TOKENS_FILE: the file cannot be read (ENOENT)'],
      [() => writeFileSync(path, ''), 'PLANT_STORE_TOKENS_FILE must contain at least one entry, such as owner:token'],
      [
        () => writeFileSync(path, 'bob:Ym9i\nada\n'),
        'PLANT_STORE_TOKENS_FILE: line 2 must be owner:token or owner:sha256=<64 hexadecimal digits>, followed by " read" if the token is read-only',
      ],
    ]
    for (const [change, expected] of changes) {
      change()
      server.child.kill('SIGHUP')
      // The server also reads the file by itself when it notices a change.
      let kept: Readonly<Record<string, unknown>> = {}
      for (let n = 1; kept['reason'] !== expected; n++) kept = await server.waitForLogEvent('tokens-kept', n)
      assert.deepEqual([kept['level'], kept['tokens']], ['warn', 1])
      assert.deepEqual([await statusOf(server, 'YWRh'), await statusOf(server, 'Ym9i')], [200, 401])
    }
  })

  test('is reread within 10 s when Kubernetes swaps a symbolic link', async (t) => {
    const directory = createTempDirectory(t)
    const writeVersion = (name: string, content: string): void => {
      mkdirSync(join(directory, name))
      writeFileSync(join(directory, name, 'tokens'), content)
      symlinkSync(name, join(directory, '..data.new'))
      renameSync(join(directory, '..data.new'), join(directory, '..data'))
    }
    writeVersion('..1', 'ada:YWRh\n')
    symlinkSync('..data/tokens', join(directory, 'tokens'))
    const server = await startServer(t, { PLANT_STORE_TOKENS_FILE: join(directory, 'tokens') })
    writeVersion('..2', 'ada:Ym9i\n')
    rmSync(join(directory, '..1'), { recursive: true })
    assert.equal((await server.waitForLogEvent('tokens-read'))['tokens'], 1)
    assert.deepEqual([await statusOf(server, 'YWRh'), await statusOf(server, 'Ym9i')], [401, 200])
  })
})

test('SIGHUP never ends the process', async (t) => {
  const server = await startServer(t)
  server.child.kill('SIGHUP')
  assert.equal(await statusOf(server, 'YWRh'), 200)
})

test('PLANT_STORE_URL_FILE can only change the password while the server runs', async (t) => {
  const path = join(createTempDirectory(t), 'url')
  writeFileSync(path, 'postgres://ada:secret1@127.0.0.1:1/plants\n')
  const server = await startServer(t, { PLANT_STORE_URL_FILE: path })
  writeFileSync(path, 'postgres://ada:secret2@127.0.0.1:1/plants\n')
  server.child.kill('SIGHUP')
  await server.waitForLogEvent('store-url-read')
  writeFileSync(path, 'postgres://ada:secret2@127.0.0.1:2/plants\n')
  server.child.kill('SIGHUP')
  const { reason } = await server.waitForLogEvent('store-url-kept')
  assert.equal(
    reason,
    'PLANT_STORE_URL_FILE: more than the password has changed; restart the server to use the new URL',
  )
  assert.doesNotMatch(server.stderr.lines.join('\n'), /secret/)
})
