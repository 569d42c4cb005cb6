// Checking a token by its digest, against a comparison whose time tells how much of a guess is right.
import { readBearerToken } from '../../dist/http/bearer.js'
import { createTokenTable } from '../../dist/http/caller.js'
import { compare } from './compare.ts'

const token = 'Yh0qVwYw5cD6Q5Hn3mS8k1pJt2rXb7uEz9aGfLxNoCi'
const known = `Bearer ${token}`
const findOwner = createTokenTable(Object.entries({ [token]: 'bench' }))
// A header that arrived is a string of its own, so that comparing it means comparing its characters.
const received = Buffer.from(known).toString('latin1')

compare('bearer', {
  'authorization === known': () => received === known,
  'findOwner(readBearerToken(fields))': () =>
    findOwner(readBearerToken({ authorization: received, authorizationCount: 1 })),
})
