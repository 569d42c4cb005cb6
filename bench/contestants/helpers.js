// What contestants write by hand, each the same, where their framework does not do it.

/** The first plants, as a Map has them. */
export function takeFirst(plants, limit) {
  const page = []
  for (const plant of plants.values()) {
    if (page.length >= limit) break
    page.push(plant)
  }
  return page
}

/** Reads a body in the cheapest way. */
export function readBody(req, callback) {
  const chunks = []
  req.on('data', (chunk) => chunks.push(chunk))
  req.on('end', () => callback(Buffer.concat(chunks).toString()))
}

export function sendJson(res, status, value, headers) {
  const body = JSON.stringify(value)
  res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body), ...headers })
  res.end(body)
}
