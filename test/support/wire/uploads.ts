import { execFile, spawnSync } from 'node:child_process'
import { request } from 'node:http'
import { promisify } from 'node:util'

/** Why an upload is refused, by the error that says so. */
export const REFUSALS = [
  { error: 40101, token: 'refused', type: 'application/json' },
  { error: 41300, token: 'ada', type: 'application/json' },
  { error: 41500, token: 'ada', type: 'text/plain' },
] as const

export type Refusal = (typeof REFUSALS)[number]

/** More than the service throws away. */
export const UPLOAD = Buffer.alloc(20 * 1000 * 1000, ' ')

/** A client that people use. */
interface UploadClient {
  /** Sends the upload to a port and returns the `error` of the answer. */
  readonly upload: (port: number, refusal: Refusal) => Promise<number>
  /** Why it cannot be tried here. */
  readonly skip: string | false
}

export const UPLOADS: Readonly<Record<string, UploadClient>> = {
  'node:http': { upload: uploadByHttp, skip: false },
  'fetch of a buffer': { upload: (port, refusal) => uploadByFetch(port, refusal, { body: UPLOAD }), skip: false },
  'fetch of a stream': {
    upload: (port, refusal) => uploadByFetch(port, refusal, { body: streamed(UPLOAD), duplex: 'half' }),
    skip: false,
  },
  curl: {
    upload: uploadByCurl,
    skip: spawnSync('curl', ['--version']).status === 0 ? false : 'curl is not installed',
  },
}

function uploadByHttp(port: number, { token, type }: Refusal): Promise<number> {
  return new Promise((resolve, reject) => {
    // In chunks: that it is over the limit shows only by counting.
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': type, 'Transfer-Encoding': 'chunked' }
    let isAnswered = false
    request(urlOf(port), { method: 'POST', headers, agent: false }, (response) => {
      isAnswered = true
      let body = ''
      response
        .setEncoding('utf8')
        .on('data', (text: string) => (body += text))
        .on('end', () => resolve(errorOf(body)))
        .on('error', reject)
    })
      // Once the client has the answer it may well meet a reset: it is still sending.
      .on('error', (error) => (isAnswered ? undefined : reject(error)))
      .end(UPLOAD)
  })
}

async function uploadByCurl(port: number, { token, type }: Refusal): Promise<number> {
  // Without the Expect field, for curl would wait for leave to send.
  const fields = ['-H', `Authorization: Bearer ${token}`, '-H', `Content-Type: ${type}`, '-H', 'Expect:']
  const args = ['--silent', '--show-error', '--data-binary', '@-', ...fields, urlOf(port)]
  const running = promisify(execFile)('curl', args)
  running.child.stdin!.end(UPLOAD)
  return errorOf((await running).stdout)
}

async function uploadByFetch(port: number, { token, type }: Refusal, init: RequestInit): Promise<number> {
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': type }
  const response = await fetch(urlOf(port), { method: 'POST', headers, ...init })
  return errorOf(await response.text())
}

/** A body that is made while it is sent. */
function streamed(bytes: Buffer): ReadableStream<Uint8Array> {
  let sent = 0
  return new ReadableStream({
    pull(controller) {
      controller.enqueue(bytes.subarray(sent, (sent += 65_536)))
      if (sent >= bytes.length) controller.close()
    },
  })
}

function urlOf(port: number): string {
  return `http://127.0.0.1:${port}/plants`
}

export function errorOf(body: string): number {
  return (JSON.parse(body) as { error: number }).error
}
