import type { TestContext } from 'node:test'
import { openDatabase, urlOf, type TestDatabase } from '../postgres-server.ts'
import { openTcpProxy, type TcpProxy } from '../../wire/tcp-proxy.ts'

/** A database, and a way to it that can be closed, cut and blocked. */
export interface ProxiedDatabase {
  readonly database: TestDatabase
  readonly proxy: TcpProxy
  /** Leads through the proxy. */
  readonly url: string
  readonly close: () => Promise<void>
}

export async function openProxiedDatabase(): Promise<ProxiedDatabase> {
  const database = await openDatabase()
  const proxy = await openTcpProxy(database.config)
  return {
    database,
    proxy,
    url: urlOf({ ...database.config, host: '127.0.0.1', port: proxy.port }),
    close: async () => {
      await database.close()
      await proxy.close()
    },
  }
}

/** Opens one that ends with the test. */
export async function useProxiedDatabase(t: TestContext): Promise<ProxiedDatabase> {
  const opened = await openProxiedDatabase()
  t.after(() => opened.close())
  return opened
}
