import { http2 } from './http2/http2.ts'
import { packets } from './packets/packets.ts'
import { postgres } from './postgres/postgres.ts'
import { reload } from './reload/reload.ts'
import { server } from './server/server.ts'
import type { SimulatedSystem } from './simulation.ts'
import { sqlite } from './sqlite/sqlite.ts'

export const systems: readonly SimulatedSystem[] = [postgres, sqlite, reload, server, packets, http2]
