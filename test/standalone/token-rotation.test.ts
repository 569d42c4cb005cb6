import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite, test, type TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { readSettings } from '../../src/standalone/settings.ts'
import { followTokenFile } from '../../src/standalone/token-rotation.ts'
import { singleToken, type Tokens } from '../../src/standalone/tokens.ts'
import { captureLog } from '../support/captured-log.ts'
import { Program, startProgram, TOKEN } from '../support/program.ts'
import { findWrong, RotationLoad, rotate, TokenSecret } from '../support/rotation-load.ts'

function makeSecret(t: TestContext, content: string): TokenSecret {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-'))
  t.after(() => rmSync(directory, { recursive: true }))
  return new TokenSecret(directory, content)
}

function startWith(t: TestContext, secret: TokenSecret): Promise<Program> {
  return startProgram(t, { PLANT_STORE_TOKENS_FILE: secret.path })
}

async function statusOf({ url }: Program, token: string): Promise<number> {
  const response = await fetch(`${url}/plants`, { headers: { Authorization: `Bearer ${token}` } })
  await response.text()
  return response.status
}

function withoutTime({ time, ...rest }: Readonly<Record<string, unknown>>): object {
  assert.equal(typeof time, 'string')
  return rest
}

suite('at SIGHUP', () => {
  test('new tokens hold, removed ones are refused, and the log counts them', async (t) => {
    const secret = makeSecret(t, 'ada:old\nada:same\nbob:reader\n')
    const program = await startWith(t, secret)
    assert.deepEqual([await statusOf(program, 'old'), await statusOf(program, 'new')], [200, 401])
    secret.swap('ada:new\nada:same\nbob:reader read\nbob:other\n')
    program.child.kill('SIGHUP')
    assert.deepEqual(withoutTime(await program.logged('tokens-read')), {
      event: 'tokens-read',
      tokens: 4,
      added: 2,
      removed: 1,
      changed: 1,
    })
    const statuses = await Promise.all(['old', 'new', 'same', 'reader'].map((token) => statusOf(program, token)))
    assert.deepEqual(statuses, [401, 200, 200, 200])
  })

  test('a file that has not changed is acknowledged too', async (t) => {
    const program = await startWith(t, makeSecret(t, 'ada:secret'))
    program.child.kill('SIGHUP')
    const none = { added: 0, removed: 0, changed: 0 }
    assert.deepEqual(withoutTime(await program.logged('tokens-read')), { event: 'tokens-read', tokens: 1, ...none })
  })

  const rows: readonly [what: string, change: (secret: TokenSecret) => void, reason: RegExp][] = [
    ['missing', (secret) => secret.remove(), /^PLANT_STORE_TOKENS_FILE names a file that cannot be read \(ENOENT\)$/],
    [
      'empty',
      (secret) => secret.overwrite(''),
      /^PLANT_STORE_TOKENS_FILE takes at least one owner:token; there is none$/,
    ],
    ['wrong', (secret) => secret.overwrite('ada:new\nada new\n'), /; line 2 is not of that form$/],
    [
      'a folder',
      (secret) => {
        secret.remove()
        mkdirSync(secret.path)
      },
      /^PLANT_STORE_TOKENS_FILE names no regular file, so it cannot be read again$/,
    ],
  ]
  for (const [what, change, reason] of rows) {
    test(`the last good tokens hold if the file is ${what}, and the log says why`, async (t) => {
      const secret = makeSecret(t, 'ada:secret')
      const program = await startWith(t, secret)
      change(secret)
      program.child.kill('SIGHUP')
      const { event, tokens, reason: logged } = await program.logged('tokens-kept')
      assert.deepEqual([event, tokens], ['tokens-kept', 1])
      assert.match(String(logged), reason)
      assert.doesNotMatch(program.stderr.all.join(), /secret|new/)
      assert.deepEqual([await statusOf(program, 'secret'), await statusOf(program, 'new')], [200, 401])
    })
  }

  test('a program without such a file goes on', async (t) => {
    const program = await startProgram(t)
    program.child.kill('SIGHUP')
    const { tokens, reason } = await program.logged('tokens-kept')
    assert.deepEqual([tokens, reason], [1, 'They come from no file.'])
    assert.equal(await statusOf(program, TOKEN), 200)
  })
})

test('SIGHUP does not end a program that is still being loaded', async (t) => {
  // The first thing that the program does is to look at the version of Node.
  const signalEarly = `
    const { versions } = process
    Object.defineProperty(process, 'versions', {
      get() {
        setImmediate(() => process.kill(process.pid, 'SIGHUP'))
        Object.defineProperty(process, 'versions', { value: versions })
        return versions
      },
      configurable: true,
    })`
  const nodeArgs = ['--import', `data:text/javascript,${encodeURIComponent(signalEarly)}`]
  const program = await Program.start({}, nodeArgs)
  t.after(() => program.end())
  assert.equal((await program.fetch('/plants')).status, 200)
})

test('a secret that is swapped by symbolic link holds within 10.5 s', async (t) => {
  const secret = makeSecret(t, 'ada:old')
  const program = await startWith(t, secret)
  const startedAt = performance.now()
  secret.swap('ada:new')
  await program.logged('tokens-read')
  assert.ok(performance.now() - startedAt < 10_500)
  assert.deepEqual([await statusOf(program, 'old'), await statusOf(program, 'new')], [401, 200])
})

test('under load no good token is refused, and no removed one accepted 0.2 s after SIGHUP', async (t) => {
  const secret = makeSecret(t, 'ada:always\nada:token0')
  const program = await startWith(t, secret)
  const rotation = rotate(secret, 20)
  const load = new RotationLoad(program.port, 300, () => rotation.asked)
  for (let n = 1; rotation.next(); n++) {
    program.child.kill('SIGHUP')
    await Promise.race([program.logged('tokens-read', rotation.goods), program.logged('tokens-kept', rotation.wrongs)])
    await setTimeout(250)
  }
  await load.stop()
  assert.ok(load.asks.length > 100)
  assert.deepEqual(findWrong(load.asks, rotation.terms, 200), [])
})

suite('a file that is looked at', () => {
  /** Follows a file with looks in quick succession; returns what was applied. */
  function follow(t: TestContext, secret: TokenSecret): { readonly applied: Tokens[]; readonly change: Promise<void> } {
    const { tokensFile } = readSettings({ PLANT_STORE_TOKENS_FILE: secret.path })
    const applied: Tokens[] = []
    // Looks do not keep a process alive.
    const alive = setInterval(() => undefined, 1000)
    t.after(() => clearInterval(alive))
    const change = new Promise<void>((resolve) => {
      const apply = (tokens: Tokens): void => {
        applied.push(tokens)
        // The line of the log follows.
        setImmediate(resolve)
      }
      followTokenFile(tokensFile!, apply, 5)
    })
    return { applied, change }
  }

  test('is complained of once for each way in which it is wrong', async (t) => {
    const events = captureLog(t)
    const secret = makeSecret(t, 'ada:old')
    const { change } = follow(t, secret)
    secret.overwrite('ada')
    await setTimeout(500)
    secret.remove()
    await setTimeout(500)
    secret.overwrite('ada:old')
    await change
    assert.deepEqual(
      events.map(({ event }) => event),
      ['tokens-kept', 'tokens-kept', 'tokens-read'],
    )
  })

  test('is not believed while it is being written', async (t) => {
    captureLog(t)
    const secret = makeSecret(t, 'ada:old')
    const { applied, change } = follow(t, secret)
    const until = performance.now() + 400
    for (let n = 0; performance.now() < until; n++) {
      secret.overwrite(`ada:half${n}`)
      await setTimeout(0)
    }
    assert.deepEqual(applied, [])
    secret.overwrite('ada:whole')
    await change
    assert.deepEqual(applied, [singleToken('whole', 'ada')])
  })
})
