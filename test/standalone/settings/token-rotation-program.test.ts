import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startProgram, type Program } from '../../support/program/program.ts'
import { findWrong, RotationLoad, rotate, TokenSecret } from '../../support/program/rotation-load.ts'
import { temporaryDirectory } from '../../support/temporary-file.ts'
import { until } from '../../support/until.ts'

async function startWith(t: TestContext, content: string): Promise<{ secret: TokenSecret; program: Program }> {
  const secret = new TokenSecret(temporaryDirectory(t), content)
  return { secret, program: await startProgram(t, { PLANT_STORE_TOKENS_FILE: secret.path }) }
}

test('a secret that is swapped by symbolic link holds within 10.5 s', async (t) => {
  const { secret, program } = await startWith(t, 'ada:old')
  const startedAt = performance.now()
  secret.swap('ada:new')
  await program.logged('tokens-read')
  assert.ok(performance.now() - startedAt < 10_500)
  assert.equal((await program.fetch('/plants', {}, 'old')).status, 401)
  assert.equal((await program.fetch('/plants', {}, 'new')).status, 200)
})

test('under load no good token is refused, and no removed one accepted once the log says so', async (t) => {
  const { secret, program } = await startWith(t, 'ada:always\nada:token0')
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
