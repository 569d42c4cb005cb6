import { Client } from '../../../bench/load.ts'
import type { NewPlant } from '../../../src/index.ts'

/** Creates plants in a program, as fast as it can, for the owner of a token. */
export async function fill(
  port: number,
  token: string,
  count: number,
  plantOf: (n: number) => Omit<NewPlant, 'id'>,
): Promise<void> {
  const client = await Client.connect(port, 8)
  const request = (n: number): string => {
    const body = JSON.stringify({ id: n, ...plantOf(n) })
    const fields = `Host: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json`
    return `POST /plants HTTP/1.1\r\n${fields}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  }
  await client.send({ request, answer: { status: 200 }, requests: count, pipelining: 16 })
  client.close()
}
