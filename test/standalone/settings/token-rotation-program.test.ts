import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startProgram } from '../../support/program/program.ts'
import { findWrong, RotationLoad, rotate, TokenSecret } from '../../support/program/rotation-load.ts'
import { temporaryDirectory } from '../../support/temporary-file.ts'
import { until } from '../../support/until.ts'

test('under load no good token is refused, and no removed one accepted once the log says so', async (t) => {
  const secret = new TokenSecret(temporaryDirectory(t), 'ada:always\nada:token0')
  const program = await startProgram(t, { PLANT_STORE_TOKENS_FILE: secret.path })
  const rotation = rotate(secret, 20)
  const load = new RotationLoad(program.port, 300, () => rotation.asked)
  const loggedAt: number[] = []
  for (let goods = 0; rotation.next(); goods = rotation.goods) {
    program.child.kill('SIGHUP')
    // The program may find a change before its signal, and then logs it twice. For a wrong one that does no harm.
    if (rotation.goods > goods) await program.stderr.find((line) => line.includes('"added":1'), rotation.goods)
    else await program.logged('tokens-kept', rotation.wrongs)
    loggedAt.push(performance.now())
    const asked = load.asks.length
    await until(() => load.asks.length >= asked + 10)
  }
  await load.stop()
  assert.ok(load.asks.length > 100)
  const holdsAt = (changedAt: number): number => loggedAt.find((at) => at > changedAt) ?? Infinity
  assert.deepEqual(findWrong(load.asks, rotation.terms, holdsAt), [])
})
