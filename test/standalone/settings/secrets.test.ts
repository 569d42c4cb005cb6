import assert from 'node:assert/strict'
import { renameSync, writeFileSync } from 'node:fs'
import { suite, test, type TestContext } from 'node:test'
import { createImportFlags, Program } from '../../support/program/program.ts'
import { createTempFile } from '../../support/temp-files.ts'
import { waitUntil } from '../../support/wait-until.ts'

const TOKEN = 'token-to-search-for-1'
const NEW_TOKEN = 'token-to-search-for-2'
/** Long enough that V8 stores a slice of the text, which would retain the whole text. */
const OWNER = 'an-owner-of-many-letters'

/**
 * On SIGWINCH, prints how often the tokens occur in reachable memory: in the strings of a heap snapshot, and in buffers,
 * including pooled buffers.
 */
const SEARCH_CODE = `
  import { Session } from 'node:inspector'
  import { setFlagsFromString } from 'node:v8'
  import { runInNewContext } from 'node:vm'

  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc')
  // This code must not contain either token itself.
  const parts = ['token-to-', 'search-for-']

  process.on('SIGWINCH', async () => {
    const session = new Session()
    session.connect()
    const post = (method, params) => new Promise((resolve, reject) => {
      session.post(method, params, (error, result) => (error ? reject(error) : resolve(result)))
    })
    gc()
    let snapshot = ''
    session.on('HeapProfiler.addHeapSnapshotChunk', ({ params }) => (snapshot += params.chunk))
    await post('HeapProfiler.takeHeapSnapshot')
    const { result } = await post('Runtime.evaluate', { expression: 'ArrayBuffer.prototype' })
    const { objects } = await post('Runtime.queryObjects', { prototypeObjectId: result.objectId })
    const functionDeclaration = \`function (text) {
      return this.filter((buffer) => process.getBuiltinModule('node:buffer').Buffer.from(buffer).includes(text)).length
    }\`
    const lines = []
    for (const number of [1, 2]) {
      const text = parts.join('') + number
      const call = { functionDeclaration, objectId: objects.objectId, arguments: [{ value: text }], returnByValue: true }
      const { result: { value } } = await post('Runtime.callFunctionOn', call)
      lines.push(number + ' strings ' + (snapshot.split(text).length - 1) + ' buffers ' + value)
    }
    console.log('searched ' + lines.join(', '))
  })`

async function startSearchable(t: TestContext, environment: Record<string, string>): Promise<Program> {
  const program = new Program({ PORT: '0', ...environment }, [], createImportFlags(SEARCH_CODE))
  t.after(() => program.stop())
  await program.waitUntilServing()
  return program
}

const NOTHING_FOUND = 'searched 1 strings 0 buffers 0, 2 strings 0 buffers 0'

/** Searches until no token is found, because the content of a token file is in memory while the server reads it, which may happen anytime. */
async function waitUntilNothingFound(program: Program): Promise<void> {
  const isSearch = (line: string): boolean => line.startsWith('searched')
  await waitUntil(async () => {
    const searches = program.stdout.lines.filter(isSearch).length
    program.child.kill('SIGWINCH')
    return (await program.stdout.waitForLine(isSearch, searches + 1)) === NOTHING_FOUND
  })
}

suite("tokens in the standalone server's memory", () => {
  test('no tokens from the token file remain in memory after startup or a reload', async (t) => {
    const path = createTempFile(t, `${OWNER}:${TOKEN}\n`)
    const program = await startSearchable(t, { PLANT_STORE_TOKENS_FILE: path })
    await waitUntilNothingFound(program)
    writeFileSync(`${path}.new`, `${OWNER}:${NEW_TOKEN}\n`)
    renameSync(`${path}.new`, path)
    program.child.kill('SIGHUP')
    await program.waitForLogEvent('tokens-read')
    await waitUntilNothingFound(program)
  })

  test('no tokens from a token file that has become invalid remain in memory', async (t) => {
    const path = createTempFile(t, `${OWNER}:${TOKEN}\n`)
    const program = await startSearchable(t, { PLANT_STORE_TOKENS_FILE: path })
    writeFileSync(path, `${OWNER}:${NEW_TOKEN}\n${OWNER}\n`)
    program.child.kill('SIGHUP')
    await program.waitForLogEvent('tokens-kept')
    await waitUntilNothingFound(program)
  })

  test('the memory contains no tokens from clients that have disconnected', async (t) => {
    const program = await startSearchable(t, { PLANT_STORE_TOKENS: `${OWNER}:${TOKEN}` })
    const connection = await program.connect()
    const fields = `Host: a\r\nAuthorization: Bearer ${TOKEN}\r\nConnection: close\r\n`
    assert.match(await connection.send(`GET /plants HTTP/1.1\r\n${fields}\r\n`).closed, /^HTTP\/1.1 200 /)
    await waitUntilNothingFound(program)
  })

  test('the memory contains no tokens from PLANT_STORE_TOKENS', async (t) => {
    const program = await startSearchable(t, { PLANT_STORE_TOKENS: `${OWNER}:${TOKEN}` })
    await waitUntilNothingFound(program)
  })
})

/** On SIGWINCH, prints which secrets are in a diagnostic report. This code is in the report, so it mustn't contain them. */
const REPORT_CODE = `
  process.on('SIGWINCH', () => {
    const report = JSON.stringify(process.report.getReport())
    const found = ['token', 'password'].filter((secret) => report.includes(secret + '-to-search-for'))
    console.log('found ' + found.join())
  })`

test('a diagnostic report contains neither tokens nor the database password', async (t) => {
  const environment = {
    PORT: '0',
    PLANT_STORE_TOKENS: `ada:${TOKEN}`,
    PLANT_STORE_URL: 'postgres://ada:password-to-search-for@127.0.0.1:1/plants',
  }
  const program = new Program(environment, [], createImportFlags(REPORT_CODE))
  t.after(() => program.stop())
  await program.waitUntilServing()
  program.child.kill('SIGWINCH')
  assert.equal(await program.stdout.waitForLine((line) => line.startsWith('found')), 'found ')
})
