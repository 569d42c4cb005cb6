// The built package with its SQLite store and a database file.
import { createServer } from 'node:http'
import { createPlantStore } from '../../dist/index.js'
import { sqliteStore } from '../../dist/stores/sqlite/sqlite-store.js'

export default function listen({ token, location, options }) {
  const store = sqliteStore(location, options)
  return createServer(createPlantStore({ tokens: { [token]: 'bench' }, store })).listen(0, '127.0.0.1')
}
