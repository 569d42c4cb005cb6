import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { Silence } from '../../../src/stores/postgres/silence.ts'

/** A silence whose server is asked as its script says, and who asked. */
function listenTo(t: TestContext): { silence: Silence; answers: ((isAnswered: boolean) => void)[] } {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const answers: ((isAnswered: boolean) => void)[] = []
  const silence = new Silence(() => new Promise((resolve) => answers.push(resolve)))
  t.after(() => silence.stop())
  return { silence, answers }
}

test('lets go of who waits when it is stopped, and never begins again', async (t) => {
  const { silence, answers } = listenTo(t)
  silence.begin(performance.now())
  const { over } = silence
  silence.stop()
  await over
  answers[0]!(true)
  await new Promise(setImmediate)
  silence.begin(performance.now())
  assert.equal(silence.over, undefined)
})

test('keeps no process alive', (t) => {
  const silence = new Silence(() => new Promise(() => undefined))
  t.after(() => silence.stop())
  const before = process.getActiveResourcesInfo()
  silence.begin(performance.now())
  assert.deepEqual(process.getActiveResourcesInfo(), before)
})
