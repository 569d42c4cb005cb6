// What contestants write by hand, each the same, where their framework does not do it.

/** The first plants, as a Map has them. */
export function firstOf(plants, limit) {
  const page = []
  for (const plant of plants.values()) {
    if (page.length >= limit) break
    page.push(plant)
  }
  return page
}

/** Reads a body in the cheapest way. */
export function readText(req, then) {
  const chunks = []
  req.on('data', (chunk) => chunks.push(chunk))
  req.on('end', () => then(Buffer.concat(chunks).toString()))
}

export function send(res, status, value, headers) {
  const body = JSON.stringify(value)
  res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body), ...headers })
  res.end(body)
}
