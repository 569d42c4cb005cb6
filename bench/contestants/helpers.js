// Code that contestants share because their frameworks don't provide it.

/** Returns the first plants of a Map, in insertion order. */
export function takeFirst(plants, limit) {
  const page = []
  for (const plant of plants.values()) {
    if (page.length >= limit) break
    page.push(plant)
  }
  return page
}

/** Reads a body in the cheapest possible way. */
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
