// fastify.js with one prepared statement per request instead of the Map. It uses the project's driver, so that both
// contestants run on the same driver.
import pg from 'pg'
import { CREATE, createApp, DELETE, LIST } from './fastify-app.js'

const OWNER = 'bench'

export default async function listen({ location, ...settings }) {
  const pool = new pg.Pool({ connectionString: location, max: 10 })
  const app = await createApp(settings)

  app.get('/plants', LIST, async (request) => {
    const { rows } = await pool.query({
      name: 'list',
      text: 'SELECT name, tag FROM plant_store_plants WHERE owner = $1 ORDER BY id LIMIT $2',
      values: [OWNER, request.query.limit ?? null],
    })
    return rows.map(({ name, tag }) => (tag === null ? { name } : { name, tag }))
  })

  app.post('/plants', CREATE, async (request, reply) => {
    const { id, name, tag } = request.body
    const { rowCount } = await pool.query({
      name: 'create',
      text: 'INSERT INTO plant_store_plants (owner, id, name, tag) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING',
      values: [OWNER, id, name, tag ?? null],
    })
    if (rowCount === 0) return reply.code(409).send({ error: 40900, message: 'The id is taken.' })
    return { name, tag }
  })

  app.delete('/plants/:id', DELETE, async (request, reply) => {
    const { rowCount } = await pool.query({
      name: 'delete',
      text: 'DELETE FROM plant_store_plants WHERE owner = $1 AND id = $2',
      values: [OWNER, request.params.id],
    })
    if (rowCount === 0) return reply.code(404).send({ error: 40401, message: 'No such plant.' })
    return reply.code(204).send()
  })

  await app.listen({ port: 0, host: '127.0.0.1' })
  return app.server
}
