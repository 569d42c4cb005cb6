/** Adds members to `Object.prototype`, as a vulnerable library lets a client do, while a function runs. */
export function withPollution<T>(members: object, run: () => T): T {
  const { prototype } = Object
  Object.assign(prototype, members)
  try {
    return run()
  } finally {
    for (const name of Object.keys(members)) Reflect.deleteProperty(prototype, name)
  }
}
