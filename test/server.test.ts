import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { suite, test } from 'node:test'
import { promisify } from 'node:util'
import { Program, startProgram, TOKEN } from './support/program.ts'

async function runToEnd(
  environment: Record<string, string>,
  args: readonly string[] = [],
  nodeArgs: readonly string[] = [],
): Promise<{ status: unknown; stdout: string; stderr: string }> {
  const { ended, stdout, stderr } = new Program(environment, args, nodeArgs)
  return { status: await ended, stdout: stdout.all.join('\n'), stderr: stderr.all.join('\n') }
}

suite('the start', () => {
  test('without tokens prints one, and a curl line that answers 200 when it is pasted', async (t) => {
    const program = new Program({ PORT: '0' })
    t.after(() => program.end())
    const curl = await program.stdout.find((line) => line.trim().startsWith('curl '))
    const [listening, token] = program.stdout.all
    assert.match(listening!, /^plant-store listening on http:\/\/127\.0\.0\.1:[1-9][0-9]*$/)
    assert.match(token!, /^The token of the owner demo is [\w-]{32}$/)

    const { stdout } = await promisify(execFile)('sh', ['-c', `${curl!} --silent --write-out ' %{http_code}'`])
    assert.equal(stdout, '{"name":"Monstera deliciosa","tag":"tropical"} 200')
  })

  test('with tokens says where it listens, and prints no token', async (t) => {
    const program = await startProgram(t)
    const { time, ...start } = await program.logged('start')
    assert.match(String(time), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    assert.deepEqual(start, { event: 'start', url: program.url, store: 'memory' })
    program.child.kill('SIGTERM')
    await program.ended
    assert.deepEqual(program.stdout.all, [`plant-store listening on ${program.url}`])
    assert.doesNotMatch(program.stderr.all.join('\n'), new RegExp(TOKEN))
  })

  test('shows an IPv6 address in brackets', async (t) => {
    const program = await startProgram(t, { HOST: '::1' })
    assert.match(program.url, /^http:\/\/\[::1\]:[1-9][0-9]*$/)
    assert.equal((await program.fetch('/livez')).status, 200)
  })

  test('prints the settings at --help and serves nothing', async () => {
    const { status, stdout, stderr } = await runToEnd({}, ['--help'])
    assert.equal(status, 0)
    assert.match(stdout, /^Usage: plant-store \[--help\]\n[^]*^ {2}PLANT_STORE_TOKENS_FILE$/m)
    assert.equal(stderr, '')
  })

  for (const args of [['--port=80'], ['--help', 'me']]) {
    test(`ends with status 2 and one line at ${args.join(' ')}`, async () => {
      assert.deepEqual(await runToEnd({}, args), {
        status: 2,
        stdout: '',
        stderr: 'plant-store: The command takes no argument except --help',
      })
    })
  }

  test('ends with status 2 and one line at a wrong setting', async () => {
    assert.deepEqual(await runToEnd({ PORT: 'http' }), {
      status: 2,
      stdout: '',
      stderr: 'plant-store: PORT takes a whole number from 0 to 65535: the port to listen on; 0 takes a free one',
    })
  })

  test('ends with status 2 and one line at a port that another has', async (t) => {
    const other = createServer().listen(0, '127.0.0.1')
    t.after(() => other.close())
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    assert.deepEqual(await runToEnd({ PORT: String(port) }), {
      status: 2,
      stdout: '',
      stderr: `plant-store: PORT takes a port that is free on HOST; ${port} is not (EADDRINUSE)`,
    })
  })

  test('ends with status 2 and one line at an address of another machine', async () => {
    assert.deepEqual(await runToEnd({ HOST: '192.0.2.1' }), {
      status: 2,
      stdout: '',
      stderr: 'plant-store: HOST takes an address of this machine, and this is not one (EADDRNOTAVAIL)',
    })
  })

  test('ends with status 1 and a stack if it is no setting that is wrong', async () => {
    const fault = `process.stdout.write = () => { throw new Error('a fault') }`
    const nodeArgs = ['--import', `data:text/javascript,${encodeURIComponent(fault)}`]
    const { status, stdout, stderr } = await runToEnd({}, ['--help'], nodeArgs)
    assert.deepEqual([status, stdout], [1, ''])
    assert.match(stderr, /^plant-store: Error: a fault\n {4}at /)
  })

  test('gives the limits of the environment to the service', async (t) => {
    const program = await startProgram(t, { PLANT_STORE_MAX_LIMIT: '1', PLANT_STORE_MAX_BODY_BYTES: '25' })
    for (const id of [1, 2]) await program.fetch('/plants', { method: 'POST', body: `{"id":${id},"name":"Fern"}` })
    const list = await program.fetch('/plants')
    assert.equal(list.headers.get('link'), '<?limit=1&after=1>; rel="next"')
    assert.equal((await program.fetch('/plants', { method: 'POST', body: `{"id":3,"name":"Ferns!!!"}` })).status, 413)
  })
})

test('serves its own paths beside the plants', async (t) => {
  const program = await startProgram(t)
  const openapi = (await (await fetch(`${program.url}/openapi.json`)).json()) as { openapi: string }
  assert.equal(openapi.openapi, '3.1.0')
  assert.deepEqual(await (await fetch(`${program.url}/readyz`)).json(), { status: 'ready' })
  const missing = await fetch(`${program.url}/nothing`)
  assert.deepEqual([missing.status, ((await missing.json()) as { error: number }).error], [404, 40400])
})

test('goes on if whoever reads its log has gone', async (t) => {
  const program = await startProgram(t, { PLANT_STORE_ACCESS_LOG: '1' })
  program.child.stderr.destroy()
  for (let i = 0; i < 3; i++) assert.equal((await program.fetch('/plants')).status, 200)
})
