/** One way to build the service. */
export interface Contestant {
  readonly name: string
  /** Its file, seen from this folder. */
  readonly file: string
  /** Answers every request the same, and so is given no plants. */
  readonly constant?: true
  /** Takes part where `--against` names it, or all peers. */
  readonly peer?: true
}

export const FLOOR: Contestant = { name: 'floor', file: 'contestants/floor.js', constant: true }
export const NATIVE: Contestant = { name: 'native', file: 'contestants/native.js' }
export const PLANT_STORE: Contestant = { name: 'plant-store', file: 'contestants/plant-store.js' }
export const PEERS: readonly Contestant[] = [
  { name: 'fastify', file: 'peers/fastify.js', peer: true },
  { name: 'express', file: 'peers/express.js', peer: true },
  { name: 'hono', file: 'peers/hono.js', peer: true },
  { name: 'polka', file: 'peers/polka.js', peer: true },
]
