import assert from 'node:assert/strict'
import type { Server } from 'node:http'
import type { TestContext } from 'node:test'
import { memoryStore, type Store } from '../../../src/index.ts'
import { send, serve, type Answer } from '../wire/service.ts'
import { createListener } from './standalone-server.ts'

/** What a test expects of an answer. */
export type ExpectedAnswer = Omit<Answer, 'connection'>

/** Serves the paths of the program, and the plants. */
export function serveProgramPaths(t: TestContext, ping?: Store['ping'], isDraining = false): Promise<Server> {
  return serve(t, createListener({ store: { ...memoryStore(), ...(ping && { ping }) } }, undefined, isDraining))
}

/** Sends a request without a token. */
export function ask(server: Server, path: string, method = 'GET', fields: readonly string[] = []): Promise<Answer> {
  return send(server, { method, path, fields })
}

export function jsonAnswer(status: number, value: unknown, headers: Record<string, string> = {}): ExpectedAnswer {
  const body = JSON.stringify(value)
  const length = String(Buffer.byteLength(body))
  return { status, headers: { 'content-type': 'application/json', 'content-length': length, ...headers }, body }
}

export async function assertAnswer(answer: Promise<Answer>, expected: ExpectedAnswer): Promise<void> {
  const { status, headers, body } = await answer
  assert.deepEqual({ status, headers, body }, expected)
}
