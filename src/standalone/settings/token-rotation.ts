import { hash } from 'node:crypto'
import type { Caller } from '../../http/caller.ts'
import { digestToken } from '../../http/token-table.ts'
import { doInRounds, type Steps } from '../../later-round.ts'
import { log } from '../log.ts'
import { rereadSettingFile } from './setting-file.ts'
import { parseTokenFile, type TokenFile, type Tokens } from './tokens.ts'
import { SettingError } from './variables.ts'

/** How soon a second look follows one that found a change. Both must find the same: a file may be half written. */
const SETTLE_MS = 100

const HALF_WRITTEN = 'takes a file that ends with a newline, as it did before: it may be half written'

/** Makes the source of the tokens. If they come from a file, it is read again whenever it has changed, too. */
export function createTokenSource(
  tokens: Tokens,
  file: TokenFile | undefined,
): { readonly authenticate: (token: string) => Caller | undefined; readonly reread: () => void } {
  let callers = tokens
  const lookAtOnce = file && followTokenFile(file, (changed) => (callers = changed))
  return {
    authenticate: (token) => callers.get(digestToken(token)),
    reread() {
      if (lookAtOnce === undefined) log('tokens-kept', { tokens: callers.size, reason: 'They come from no file.' })
      else lookAtOnce()
    },
  }
}

/**
 * Follows the content of a file of tokens. Its time or inode would not do: a mounted secret is swapped by symbolic
 * link. If the file is missing, wrong or half written, the last good tokens hold.
 * @param apply is given the tokens when they have changed
 * @param lookMs how often the file is looked at
 * @returns a function that rereads the file now, without the second look
 */
export function followTokenFile(file: TokenFile, apply: (tokens: Tokens) => void, lookMs = 10_000): () => void {
  const { variable, path } = file
  let held = file.tokens
  /** Whether the last good file ended with a newline. */
  let endedLine = endsLine(file.bytes)
  /** What the last look found: a digest of the file, which may hold tokens in plain text, or why it cannot be read. */
  let seen = hash('sha256', file.bytes)
  /** What the log has told of last. */
  let told = seen
  let latest = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  function lookIn(ms: number): void {
    clearTimeout(timer)
    timer = setTimeout(() => queue(false), ms).unref()
  }

  /** One look at a time: a file on a network may take long to read. */
  function queue(isTold: boolean): void {
    latest = latest.then(() => look(isTold))
  }

  async function look(isTold: boolean): Promise<void> {
    const found = await rereadSettingFile(variable, path).catch((error: unknown) => error as SettingError)
    const print = found instanceof SettingError ? found.message : hash('sha256', found)
    const isSettled = print === seen
    seen = print
    if (isTold || isSettled) await take(found, print, isTold)
    // The signal may have come before the file was whole.
    lookIn(isTold || !isSettled ? SETTLE_MS : lookMs)
  }

  async function take(found: Buffer | SettingError, print: string, isTold: boolean): Promise<void> {
    if (print === told && !isTold) return
    told = print
    try {
      if (found instanceof SettingError) throw found
      const tokens = await doInRounds(parseTokenFile(variable, found))
      if (endedLine && !endsLine(found)) throw new SettingError(variable, HALF_WRITTEN)
      const change = await doInRounds(compare(held, tokens))
      endedLine = endsLine(found)
      held = tokens
      apply(tokens)
      log('tokens-read', { tokens: tokens.size, ...change })
    } catch (error) {
      log('tokens-kept', { tokens: held.size, reason: (error as SettingError).message })
    }
  }

  lookIn(lookMs)
  return () => queue(true)
}

function endsLine(bytes: Buffer): boolean {
  return bytes.at(-1) === 0x0a
}

function* compare(before: Tokens, after: Tokens): Steps<Readonly<Record<string, number>>> {
  let added = 0
  let changed = 0
  for (const [token, { owner, access }] of after) {
    yield
    const caller = before.get(token)
    if (caller === undefined) added++
    else if (caller.owner !== owner || caller.access !== access) changed++
  }
  return { added, removed: before.size + added - after.size, changed }
}
