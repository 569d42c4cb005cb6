import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { startChild } from '../support/child.ts'
import { codeOf } from '../support/package/documents.ts'
import { UNCOVERED } from '../support/package/packed.ts'
import { withoutCommand } from '../support/requirements.ts'
import { freePort } from '../support/wire/free-port.ts'
import { listening } from '../support/wire/listening.ts'

const run = promisify(execFile)
const shown = (n: number): string => codeOf('CONTRIBUTING.md', 'sh', 'Debug one case', n)

test('the command that debugs one case runs one', async () => {
  const command = shown(0).replace('--inspect-brk ', '--test-reporter=tap ')
  const { stdout } = await run('sh', ['-c', command], { env: { ...UNCOVERED, NODE_TEST_CONTEXT: undefined } })
  assert.match(stdout, /^# tests [1-9]\d*\n(?:# suites \d+\n)?# pass 1$/m)
})

test('the commands that show what the service does with a request do', { skip: withoutCommand('curl') }, async (t) => {
  const port = await freePort()
  const [command, ...send] = shown(1).replace('3000', String(port)).split('\n')
  const env = { ...UNCOVERED, PORT: String(port) }
  const started = ['-c', `exec env ${command!.replace('--inspect ', '')}`]
  const child = startChild(t, 'sh', started, { env, stdio: 'ignore' })
  await listening(port, undefined, () => assert.equal(child.exitCode, null, 'the service has ended'))
  const { stdout } = await run('sh', ['-c', send.join('\n')])
  assert.match(stdout, /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n\[\]$/)
})
