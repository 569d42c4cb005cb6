import { App } from '@tinyhttp/app'

export default function listen({ token, refusal }) {
  const authorization = `Bearer ${token}`
  const plants = new Map()
  // The other header is not asked for here, and costs time.
  const app = new App({ settings: { xPoweredBy: false } })

  app.use((req, res, next) => {
    if (req.headers.authorization === authorization) return next()
    send(res, 401, refusal, { 'WWW-Authenticate': 'Bearer error="invalid_token"' })
  })

  app.get('/plants', (req, res) => {
    const limit = Number(req.query.limit ?? Infinity)
    const page = []
    for (const plant of plants.values()) {
      if (page.length >= limit) break
      page.push(plant)
    }
    send(res, 200, page)
  })

  // tinyhttp parses no bodies; this is the cheapest way to do it by hand.
  app.post('/plants', (req, res) => {
    const chunks = []
    req.on('data', (chunk) => chunks.push(chunk))
    req.on('end', () => {
      const { id, name, tag } = JSON.parse(Buffer.concat(chunks).toString())
      if (plants.has(id)) return send(res, 409, { error: 40900, message: 'The id is taken.' })
      const plant = { name, tag }
      plants.set(id, plant)
      send(res, 200, plant)
    })
  })

  app.delete('/plants/:id', (req, res) => {
    if (plants.delete(Number(req.params.id))) res.writeHead(204).end()
    else send(res, 404, { error: 40401, message: 'No such plant.' })
  })

  return app.listen(0, undefined, '127.0.0.1')
}

// Its own `json` writes with indentation.
function send(res, status, value, headers) {
  const body = JSON.stringify(value)
  res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body), ...headers })
  res.end(body)
}
