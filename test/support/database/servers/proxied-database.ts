import type { Scope } from '../../child.ts'
import { openDatabase, urlOf, type TestDatabase } from '../postgres-server.ts'
import { openTcpProxy, type TcpProxy } from '../../wire/tcp-proxy.ts'

/** A database that ends with the test, and a way to it that can be closed, cut and blocked. */
export interface ProxiedDatabase {
  readonly database: TestDatabase
  readonly proxy: TcpProxy
  /** Leads through the proxy. */
  readonly url: string
}

export async function useProxiedDatabase(t: Scope): Promise<ProxiedDatabase> {
  const database = await openDatabase()
  const proxy = await openTcpProxy(database.config)
  t.after(async () => {
    await database.close()
    await proxy.close()
  })
  return { database, proxy, url: urlOf({ ...database.config, host: '127.0.0.1', port: proxy.port }) }
}
