import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { suite, test } from 'node:test'
import { checkAuthenticate, type TokenHolder } from '../../src/http/caller.ts'

suite('a function of the host', () => {
  const request = new IncomingMessage(new Socket())
  const callerOf = (holder: unknown): unknown => checkAuthenticate(() => holder as TokenHolder, 1000)('secret', request)

  test('finds the caller of a token', () => {
    assert.deepEqual(callerOf('ada'), { owner: 'ada', access: 'write' })
    assert.deepEqual(callerOf({ owner: 'ada', access: 'read' }), { owner: 'ada', access: 'read' })
  })

  for (const holder of [null, undefined]) {
    test(`refuses a token by ${holder}`, () => assert.equal(callerOf(holder), undefined))
  }

  for (const [holder, must] of [
    ['', 'an owner: a non-empty string of well-formed Unicode without U+0000'],
    [7, 'an owner: a non-empty string of well-formed Unicode without U+0000'],
    [{ owner: 'ada', access: 'all' }, 'an access of "read" or "write", not \'all\''],
  ] as const) {
    test(`is at fault if it returns ${JSON.stringify(holder)}`, () => {
      assert.throws(() => callerOf(holder), { name: 'TypeError', message: `authenticate must return ${must}` })
    })
  }

  test('has its time', async () => {
    const find = checkAuthenticate(() => new Promise<string>(() => undefined), 1)
    await assert.rejects(async () => find('secret', request), {
      error: 50300,
      cause: new Error('authenticate did not answer within 1 ms'),
    })
  })
})
