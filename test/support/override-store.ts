import type { Store } from '../../src/index.ts'

/** Wraps a store, and replaces some of its methods. */
export function overrideStore(store: Store, overrides: Partial<Store>): Store {
  return new Proxy(store, {
    get(_, name) {
      const owner = name in overrides ? overrides : store
      const member: unknown = Reflect.get(owner, name)
      return typeof member === 'function' ? (member.bind(owner) as unknown) : member
    },
  })
}
