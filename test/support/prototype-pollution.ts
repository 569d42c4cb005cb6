/** Pollutes `Object.prototype` while a function runs, as a client could do if the host uses a vulnerable library. */
export function withPollutedPrototype<T>(properties: object, run: () => T): T {
  Object.assign(Object.prototype, properties)
  try {
    return run()
  } finally {
    clean(properties)
  }
}

/** Async variant of {@link withPollutedPrototype}: cleans up when the promise settles. */
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
