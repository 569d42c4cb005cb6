// The time from starting a process to its first response: the standalone server vs. a bare node:http script.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Client } from '../load.ts'
import { TOKEN } from '../cases.ts'
import { printRows } from './compare.ts'

const ROUNDS = 15

const request = (): string => `GET /plants HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`
const expectedResponse = { status: 200, body: Buffer.from('[]') }

async function measureStartup(file: string): Promise<number> {
  const start = performance.now()
  const child = spawn(process.execPath, [fileURLToPath(new URL(file, import.meta.url))], {
    env: { ...process.env, PORT: '0', PLANT_STORE_TOKENS: `bench:${TOKEN}` },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exit = once(child, 'exit')
  try {
    const client = await Client.connect(await readPort(child.stdout), 1)
    await client.send({ request, expectedResponse, requests: 1 })
    client.close()
    return performance.now() - start
  } finally {
    child.kill()
    await exit
  }
}

async function readPort(output: AsyncIterable<Buffer>): Promise<number> {
  let text = ''
  for await (const chunk of output) {
    text += chunk.toString()
    const port = /listening on http:\/\/127\.0\.0\.1:(\d+)\n/.exec(text)?.[1]
    if (port !== undefined) return Number(port)
  }
  throw new Error(`The server didn't print an address: ${JSON.stringify(text)}`)
}

const rows = ['bare-server.js', '../../dist/server.js'].map((file) => ({ name: file, times: [] as number[] }))
for (let round = 0; round < ROUNDS; round++) {
  for (const { name, times } of rows) times.push((await measureStartup(name)) * 1e6)
}
printRows('time from exec to the first response', rows)
