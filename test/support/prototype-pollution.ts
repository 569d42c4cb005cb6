/** Adds members to `Object.prototype`, as a vulnerable library lets a client do, while a function runs. */
export function withPollutedPrototype<T>(properties: object, run: () => T): T {
  Object.assign(Object.prototype, properties)
  try {
    return run()
  } finally {
    clean(properties)
  }
}

/** As {@link withPollutedPrototype}, until the promise of the function settles. */
export async function whilePolluted<T>(members: object, run: () => Promise<T>): Promise<T> {
  Object.assign(Object.prototype, members)
  try {
    return await run()
  } finally {
    clean(members)
  }
}

function clean(members: object): void {
  for (const name of Object.keys(members)) Reflect.deleteProperty(Object.prototype, name)
}
