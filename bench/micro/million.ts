// Listing a million plants in one response.
import { setTimeout } from 'node:timers/promises'
import { Client } from '../load.ts'
import { TOKEN } from '../cases.ts'
import { ServerProcess } from '../server-process.ts'

const COUNT = 1_000_000
const MIB = 2 ** 20

const pieces = Array.from({ length: COUNT }, (_, n) => `{"name":"Monstera deliciosa ${n}","tag":"tropical"}`)
const body = Buffer.from(`[${pieces.join()}]`)
const request = (): string => `GET /plants HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`

const server = await ServerProcess.start('micro/million-server.js', { token: TOKEN, count: COUNT })
const client = await Client.connect(server.port, 1)

console.log(`\nlist of ${COUNT} plants (${(body.length / MIB).toFixed(0)} MiB), five times`)
for (let round = 0; round < 5; round++) {
  const before = await server.usage()
  const controller = new AbortController()
  const peakMemory = measurePeakMemory(controller.signal)
  const { seconds } = await client.send({ request, expectedResponse: { status: 200, body }, requests: 1 })
  controller.abort()
  const growth = (await peakMemory) - before.rss
  const cpu = ((await server.usage()).cpu - before.cpu) / 1e6
  console.log(
    `  ${formatRate(seconds)} plants/s, ${formatRate(cpu)} plants per CPU second, ` +
      `resident memory ${(before.rss / MIB).toFixed(0)} MiB + ${(growth / MIB).toFixed(0)} MiB`,
  )
}
client.close()
await server.stop()

async function measurePeakMemory(signal: AbortSignal): Promise<number> {
  let highest = 0
  while (!signal.aborted) {
    highest = Math.max(highest, (await server.usage()).rss)
    await setTimeout(5)
  }
  return highest
}

function formatRate(seconds: number): string {
  return Math.round(COUNT / seconds).toLocaleString('en')
}
