// Looking up a token by its digest vs. comparing strings. (The timing of a string comparison reveals how much of a
// guess is correct.)
import { readBearerToken } from '../../dist/http/bearer.js'
import { createTokenTable } from '../../dist/http/caller.js'
import { compare } from './compare.ts'

const token = 'Yh0qVwYw5cD6Q5Hn3mS8k1pJt2rXb7uEz9aGfLxNoCi'
const known = `Bearer ${token}`
const findOwner = createTokenTable(Object.entries({ [token]: 'bench' }))
// A received header is a different string object, so that `===` has to compare the characters.
const received = Buffer.from(known).toString('latin1')

compare('bearer', {
  'authorization === known': () => received === known,
  'findOwner(readBearerToken(fields))': () =>
    findOwner(readBearerToken({ authorization: received, authorizationCount: 1 })),
})
