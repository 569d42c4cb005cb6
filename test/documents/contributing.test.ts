import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startChild } from '../support/child.ts'
import { codeOf } from '../support/package/documents.ts'
import { runScript, UNCOVERED } from '../support/package/packed.ts'
import { withoutCommand } from '../support/requirements.ts'
import { freePort } from '../support/wire/free-port.ts'
import { listening } from '../support/wire/listening.ts'

const shown = (n: number): string => codeOf('CONTRIBUTING.md', 'sh', 'Debug one case', n)

test('the command that debugs one case runs one', async () => {
  const printed = await runScript(shown(0).replace('--inspect-brk ', '--test-reporter=tap '))
  assert.match(printed, /^# tests [1-9]\d*\n(?:# suites \d+\n)?# pass 1$/m)
})

test('the commands that show what the service does with a request do', { skip: withoutCommand('curl') }, async (t) => {
  const port = await freePort()
  const [command, ...send] = shown(1).replace('3000', String(port)).split('\n')
  const env = { ...UNCOVERED, PORT: String(port) }
  const started = ['-c', `exec env ${command!.replace('--inspect ', '')}`]
  const child = startChild(t, 'sh', started, { env, stdio: 'ignore' })
  await listening(port, undefined, () => assert.equal(child.exitCode, null, 'the service has ended'))
  assert.match(await runScript(send.join('\n')), /^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n\[\]$/)
})
