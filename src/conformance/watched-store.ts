import { inspect } from 'node:util'
import { withDeadline, type MaybePromise } from '../maybe-promise.ts'
import type { Store, StoreMethod } from '../plants/store.ts'

/** A store under test. Its results may be anything. */
export type WatchedStore = {
  readonly [Name in StoreMethod]: (...args: Parameters<NonNullable<Store[Name]>>) => Promise<unknown>
}

export type Check = (store: WatchedStore, seed: number) => Promise<void>

/** Gives each call of a store its time. One that takes longer, or throws, fails with an error that names it. */
export function watchStore(store: Store, timeoutMs: number): WatchedStore {
  return {
    create: (...args) => settleCall(callText('create', ...args), () => store.create(...args), timeoutMs),
    list: (...args) => settleCall(callText('list', ...args), () => store.list(...args), timeoutMs),
    delete: (...args) => settleCall(callText('delete', ...args), () => store.delete(...args), timeoutMs),
    ping: () => settleCall('ping()', () => store.ping?.(), timeoutMs),
    close: () => settleCall('close()', () => store.close?.(), timeoutMs),
  }
}

export async function settleCall<T>(call: string, act: () => MaybePromise<T>, timeoutMs: number): Promise<T> {
  const late = new Error(`${call} must settle. It has not within ${timeoutMs} ms.`)
  try {
    return await withDeadline(act(), timeoutMs, () => late)
  } catch (cause) {
    if (cause === late) throw late
    throw new Error(`${call} must not fail. It failed with ${String(cause)}`, { cause })
  }
}

/** A call as it is written in code; long texts are cut. */
export function callText(method: StoreMethod, ...args: readonly unknown[]): string {
  return `${method}(${args.map((argument) => quote(argument)).join(', ')})`
}

export function quote(value: unknown): string {
  return inspect(value, { breakLength: Infinity, maxStringLength: 40 })
}
