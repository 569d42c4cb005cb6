import { http2 } from './http2/http2.ts'
import { packets } from './packets/packets.ts'
import { postgres } from './postgres/postgres.ts'
import { rotation } from './rotation/rotation.ts'
import { server } from './server/server.ts'
import type { Part } from './simulation.ts'
import { sqlite } from './sqlite/sqlite.ts'

/** What can be simulated. */
export const parts: readonly Part[] = [postgres, sqlite, rotation, server, packets, http2]
