/** The token that every contestant accepts: as long as the tokens that the standalone server generates. */
export const TOKEN = 'Yh0qVwYw5cD6Q5Hn3mS8k1pJt2rXb7uE'
const WRONG_TOKEN = 'Yh0qVwYw5cD6Q5Hn3mS8k1pJt2rXb7uF'

/** A request that is sent to each contestant over and over. */
export interface Case {
  readonly name: string
  /** Returns the nth request of a run. */
  readonly request: (n: number) => string
  readonly status: number
  /** The length of each response body in bytes. Undefined if the contestants send different bodies, as for errors. */
  readonly bodyBytes?: number
  /** Whether each request uses up one of the plants that were created before. */
  readonly deletesPlants?: true
}

const PLANT = { name: 'Monstera deliciosa', tag: 'tropical' }
const PLANT_BYTES = JSON.stringify(PLANT).length

/** Ids have nine digits, so that all requests of a case have the same length. */
const FIRST_ID = 100_000_000
/** Greater than the id of any plant that was created before the run. */
const FIRST_NEW_ID = 500_000_000

const withoutBody = (method: string, target: string, token = TOKEN): string =>
  `${method} ${target} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${token}\r\n\r\n`

function createPlant(id: number): string {
  const body = JSON.stringify({ id, ...PLANT })
  return (
    `POST /plants HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer ${TOKEN}\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  )
}

/** Returns the request that creates the nth plant before a run. */
export const seedRequest = (n: number): string => createPlant(FIRST_ID + n)

function listPlants(count: number): Case {
  const text = withoutBody('GET', `/plants?limit=${count}`)
  // The brackets of the array, the plants, and the commas between them.
  return { name: `list ${count}`, request: () => text, status: 200, bodyBytes: count * (PLANT_BYTES + 1) + 1 }
}

const withWrongToken = withoutBody('GET', '/plants?limit=10', WRONG_TOKEN)

export const CASES: readonly Case[] = [
  listPlants(10),
  listPlants(100),
  { name: 'create', request: (n) => createPlant(FIRST_NEW_ID + n), status: 200, bodyBytes: PLANT_BYTES },
  {
    name: 'delete',
    request: (n) => withoutBody('DELETE', `/plants/${FIRST_ID + n}`),
    status: 204,
    bodyBytes: 0,
    deletesPlants: true,
  },
  { name: 'wrong token', request: () => withWrongToken, status: 401 },
]
