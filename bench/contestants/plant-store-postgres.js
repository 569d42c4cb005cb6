// The built package with its Postgres store and a pool of 10 connections.
import { createServer } from 'node:http'
import pg from 'pg'
import { createPlantStore } from '../../dist/index.js'
import { postgresStore } from '../../dist/stores/postgres/postgres-store.js'

export default function listen({ token, location, options }) {
  const store = postgresStore(new pg.Pool({ connectionString: location, max: 10 }), options)
  return createServer(createPlantStore({ tokens: { [token]: 'bench' }, store })).listen(0, '127.0.0.1')
}
