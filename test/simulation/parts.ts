import type { Fault } from './faults.ts'
import { faults as postgresFaults } from './postgres/faults.ts'
import { postgres } from './postgres/postgres.ts'
import { faults as rotationFaults } from './rotation/faults.ts'
import { rotation } from './rotation/rotation.ts'
import { faults as serverFaults } from './server/faults.ts'
import { server } from './server/server.ts'
import type { Part } from './simulation.ts'
import { faults as sqliteFaults } from './sqlite/faults.ts'
import { sqlite } from './sqlite/sqlite.ts'

/** What can be simulated, and the faults that each part must find. */
export const parts: readonly (readonly [Part, readonly Fault[]])[] = [
  [postgres, postgresFaults],
  [sqlite, sqliteFaults],
  [rotation, rotationFaults],
  [server, serverFaults],
]
