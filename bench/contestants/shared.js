// Code that contestants share.

export const TOKEN = process.env.BENCH_TOKEN

/** Prints the line by which the benchmark recognizes that a server is listening, as the standalone server does. */
export function announce(server) {
  console.log(`listening on http://127.0.0.1:${server.address().port}`)
}

/** Returns the first plants of a Map, in insertion order. Node 20 has no iterator helpers. */
export function takeFirst(plants, limit) {
  const page = []
  for (const plant of plants.values()) {
    if (page.length >= limit) break
    page.push(plant)
  }
  return page
}
