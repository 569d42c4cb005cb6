import { Client } from '../../../bench/load.ts'
import type { NewPlant } from '../../../src/index.ts'

/** Creates plants in a running program as fast as possible, for the owner of a token. */
export async function createPlants(
  port: number,
  token: string,
  count: number,
  makePlant: (n: number) => Omit<NewPlant, 'id'>,
): Promise<void> {
  const client = await Client.connect(port, 8)
  const encodeRequest = (n: number): string => {
    const body = JSON.stringify({ id: n, ...makePlant(n) })
    const fields = `Host: a\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json`
    return `POST /plants HTTP/1.1\r\n${fields}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  }
  await client.send({ request: encodeRequest, expectedResponse: { status: 200 }, requests: count, pipelining: 16 })
  client.close()
}
