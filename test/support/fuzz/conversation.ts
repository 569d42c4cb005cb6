import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { OWNER } from './requests.ts'
import type { FuzzedService, Visit } from './service.ts'
import { RawConnection } from '../wire/raw-connection.ts'
import { readAnswers, type WireAnswer } from '../wire/wire.ts'

/** What came of the bytes that a client sent. */
export interface Outcome {
  readonly answers: readonly WireAnswer[]
  /** What the server sent that is no whole answer. */
  readonly rest: string
  /** Whether the server closed the connection before the client ended its side. */
  readonly isClosed: boolean
  /** The creates and deletes that were carried out, in order, each with what the store said. */
  readonly writes: readonly string[]
  /** The plants that were there at the end. */
  readonly kept: readonly string[]
}

/** A place where the bytes are cut, and what the client waits for there: until the server has read them, or is idle. */
export interface Cut {
  readonly at: number
  readonly isAnswered: boolean
}

/** Nothing has happened for so many rounds of the event loop: nothing will, but for a timer or what the client does. */
const IDLE_TURNS = 8

/** Something must happen within this time. */
const PATIENCE_MS = 10_000

/**
 * Sends the bytes of one client as an owner of its own, cut into packets, and reads until the server closes.
 * @param pace how fast the store answers; see {@link FuzzedService.enter}
 */
export async function converse(
  service: FuzzedService,
  bytes: string,
  cuts: readonly Cut[],
  pace: number,
): Promise<Outcome> {
  const visit = service.enter(pace)
  const own = bytes.replaceAll(OWNER, visit.tag)
  const client = await RawConnection.open(service.server)
  const connection = new Connection(client, await service.accepted(client.socket.localPort!), visit)

  let sent = 0
  for (const { at, isAnswered } of cuts) {
    connection.send(own.slice(sent, at))
    sent = at
    if (isAnswered) await connection.untilIdle()
    else await connection.untilRead()
  }
  connection.send(own.slice(sent))
  await connection.untilIdle()
  const { isClosed } = connection
  // Had the client ended its side before, Node would not send what it has not answered yet.
  const received = await connection.end()

  const kept = await service.leave(visit)
  const text = received.replaceAll(visit.tag, OWNER)
  const { answers, rest } = readAnswers(Buffer.from(text, 'latin1'), bytes.includes('HEAD '))
  return { answers, rest: rest.toString('latin1'), isClosed, writes: visit.writes, kept }
}

/** Both ends of a connection: this process has the server, too, so that no wait has to be a guess. */
class Connection {
  readonly #client: RawConnection
  readonly #accepted: Socket
  readonly #visit: Visit
  #sentBytes = 0

  constructor(client: RawConnection, accepted: Socket, visit: Visit) {
    this.#client = client
    this.#accepted = accepted
    this.#visit = visit
  }

  send(bytes: string): void {
    this.#sentBytes += bytes.length
    this.#client.send(Buffer.from(bytes, 'latin1'))
  }

  /** Whether the server has ended its side, or all. */
  get isClosed(): boolean {
    return this.#accepted.writableEnded || this.#accepted.destroyed
  }

  /** Settles once the server has read and parsed all that was sent, or is idle. */
  async untilRead(): Promise<void> {
    await this.untilIdle(() => this.#accepted.bytesRead === this.#sentBytes && this.#accepted.readableLength === 0)
  }

  /** Settles once the server has done all that it can with what was sent, or as soon as it is so. */
  async untilIdle(isSo = (): boolean => false): Promise<void> {
    const startedAt = performance.now()
    let before = -1
    for (let quiet = 0; quiet < IDLE_TURNS && !isSo();) {
      await this.#turn(startedAt)
      const { bytesRead, bytesWritten, readableLength } = this.#accepted
      const now = bytesRead + bytesWritten - readableLength + this.#client.received.length + this.#visit.writes.length
      quiet = now === before && this.#isWaiting() ? quiet + 1 : 0
      before = now
    }
  }

  /** Ends the client's side and settles with all that was received, once the server has closed. */
  async end(): Promise<string> {
    const { socket } = this.#client
    socket.end()
    const startedAt = performance.now()
    while (!socket.destroyed || !this.#accepted.destroyed || this.#visit.pending > 0) await this.#turn(startedAt)
    return this.#client.received
  }

  /** Whether all that was sent has reached the other end, or never will, so that more waiting is of no use. */
  #isWaiting(): boolean {
    const { bytesRead, bytesWritten, readableLength, destroyed } = this.#accepted
    const isRead = bytesRead === this.#sentBytes || readableLength > 0 || this.#accepted.isPaused() || this.isClosed
    return isRead && (bytesWritten === this.#client.received.length || destroyed) && this.#visit.pending === 0
  }

  async #turn(startedAt: number): Promise<void> {
    await setImmediate()
    assert.ok(performance.now() - startedAt < PATIENCE_MS, 'the server does not go on')
  }
}
