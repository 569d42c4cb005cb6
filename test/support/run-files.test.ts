import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { suite, test, type TestContext } from 'node:test'
import { relative } from 'node:path'
import { createTempFile } from './temp-files.ts'
import { waitUntil } from './wait-until.ts'

interface ProgressListener {
  finish(): boolean
}
interface Output {
  readonly isTTY: boolean
  readonly columns: number
  write(text: string): void
}
interface RunOptions {
  readonly nodeArgs: readonly string[]
  readonly concurrency: number
  readonly limitSeconds: number
  readonly progress: ProgressListener
}

// TypeScript would require declaration files for static imports.
const { Progress } = (await import(import.meta.resolve('./progress.js'))) as {
  Progress: new (total: number, output: Output) => ProgressListener
}
const { runFiles } = (await import(import.meta.resolve('./run-files.js'))) as {
  runFiles: (groups: readonly (readonly string[])[], options: RunOptions) => Promise<void>
}

const ENVIRONMENT = import.meta.resolve('./environment.js')

/** Runs test files with the given code, by group, and returns what was printed and whether all tests have passed. */
async function run(t: TestContext, groups: readonly (readonly string[])[], limitSeconds = 60, isTTY = false) {
  const imports = `import { spawn } from 'node:child_process'
    import { suite, test } from 'node:test'\n`
  const files = groups.map((codes, i) =>
    codes.map((code, j) => relative('', createTempFile(t, imports + code, `${i}-${j}.test.mjs`))),
  )
  let printed = ''
  const progress = new Progress(files.flat().length, {
    isTTY,
    columns: 80,
    write: (text: string) => void (printed += text),
  })
  await runFiles(files, { nodeArgs: [], concurrency: 2, limitSeconds, progress })
  return { files: files.flat(), hasPassed: progress.finish(), printed }
}

suite('the test runner', () => {
  test('prints only failures, the reasons of skipped tests, and the totals', async (t) => {
    const { printed, hasPassed, files } = await run(t, [
      [
        `test('passes', () => console.log('quiet'))
      test('is skipped', { skip: 'x is not installed' }, () => {})`,
        `suite('outer', () => test('fails', () => { throw new Error('a fault') }))
      test('is skipped', { skip: 'x is not installed' }, () => {})
      console.log('loud')`,
      ],
    ])
    assert.equal(hasPassed, false)
    assert.match(printed, /^\nFAILED \S+0-1\.test\.mjs: outer > fails\n {2}Error: a fault\n {6}at /)
    assert.match(printed, /\n {4}loud\n/)
    assert.doesNotMatch(printed, /passes/)
    const [, summary] = printed.split('\nFailed:\n')
    assert.equal(
      summary!.replace(/in \d+ s/, 'in 1 s'),
      `  ${files[1]}: outer > fails\n\nSkipped:\n     2  x is not installed\n\n2 files in 1 s\n1 passed, 1 failed, 2 skipped\n`,
    )
  })

  test('shows the number of files and the slowest one on a terminal', async (t) => {
    const { printed } = await run(t, [[`test('a', () => {})`], [`test('b', () => {})`]], 60, true)
    assert.match(printed, /\r\x1b\[K\d s: 1 of 2 files, 0 failed, running: \S+/)
    assert.match(printed, /\n2 passed, 0 failed, 0 skipped\n$/)
  })

  test('fails if there was no test to run', async (t) => {
    const { printed, hasPassed } = await run(t, [['']])
    assert.equal(hasPassed, false)
    assert.match(printed, /^\nNo test has a name that matches\.\n/)
  })

  test('kills a file that exceeds the time limit, and the processes it has started', async (t) => {
    const code = `process.on('SIGTERM', () => {})
      test('ends', () => {})
      test('hangs', () => {
        console.log(spawn('sleep', ['300'], { stdio: 'inherit' }).pid)
        return new Promise(() => setInterval(() => {}, 1000))
      })`
    const { printed, hasPassed, files } = await run(t, [[code], [`test('passes', () => {})`]], 2)
    assert.equal(hasPassed, false)
    assert.ok(
      printed.includes(`FAILED ${files[0]}\n  It was killed after 2 s. The last test that ended: ${files[0]}: ends.\n`),
    )
    const pid = Number(/^ {4}(\d+)$/m.exec(printed)![1])
    await waitUntil(() => !isRunning(pid))
    assert.match(printed, /\n2 passed, 1 failed, 0 skipped\n$/)
  })

  for (const [what, code, message] of [
    ['exits before its tests end', 'process.exit(3)', 'The process exited with status 3.'],
    ['is killed', `process.kill(process.pid, 'SIGKILL')`, 'The process was ended by SIGKILL.'],
  ] as const) {
    test(`reports a file that ${what}`, async (t) => {
      const { printed, hasPassed } = await run(t, [[code]])
      assert.equal(hasPassed, false)
      assert.ok(printed.includes(`  ${message} The last test that ended: none.\n`), printed)
    })
  }
})

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const TERMINAL = {
  ...{ FORCE_COLOR: '1', NO_COLOR: '1', CI: 'true', TERM: 'dumb', NODE_OPTIONS: '--no-warnings' },
  ...{ TZ: 'Pacific/Kiritimati', LANG: 'C', LC_ALL: 'C', PLANT_STORE_TOKENS: 'a:b', PORT: '1' },
}

test('a file that can’t be loaded fails, and the others of its process run', async (t) => {
  const { printed } = await run(t, [[`import './missing.mjs'`, `test('passes', () => {})`]])
  assert.match(printed, /FAILED \S+: \S+0-0\.test\.mjs can be loaded\n +Error \[ERR_MODULE_NOT_FOUND\]/)
  assert.match(printed, /\n1 passed, 1 failed, 0 skipped\n$/)
})

test('child processes of tests inherit no variables of the terminal and the shell', (t) => {
  const code = `import { execFileSync } from 'node:child_process'
    console.log(execFileSync('env', { encoding: 'utf8' }))`
  const file = createTempFile(t, code, 'env.test.mjs')
  const env = { ...process.env, ...TERMINAL, TEST_EXAMPLE: '1' }
  const { stdout } = spawnSync(process.execPath, ['--import', ENVIRONMENT, file], { env, encoding: 'utf8' })
  const names = stdout.split('\n').map((line) => line.split('=')[0]!)
  assert.deepEqual(
    Object.keys(TERMINAL).filter((name) => names.includes(name)),
    [],
  )
  assert.ok(names.includes('PATH') && names.includes('TEST_EXAMPLE'))
})
