import type { WireAnswer } from './wire.ts'

/** The statuses of answers that are to come. */
export async function statusesOf(answers: Promise<readonly WireAnswer[]>): Promise<number[]> {
  return (await answers).map(({ status }) => status)
}
