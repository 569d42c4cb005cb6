import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import type * as Package from '../../src/index.ts'
import { memoryStore, StoreUnavailableError, type Store } from '../../src/index.ts'
import { loadCopy, loadInRealm } from '../support/package/copies.ts'
import { get, post, sendRequest, serve, servePlants } from '../support/wire/service.ts'

const INDEX = 'src/index.ts'
const BODY = '{"id":1,"name":"Monstera"}'
const tokens = { ada: 'ada' }
const onError = (): void => undefined

for (const [place, load] of [
  ['another copy of the package', () => loadCopy(INDEX)],
  ['another realm', async () => (await loadInRealm(INDEX)).exports],
] as const) {
  suite(`a StoreUnavailableError from ${place}`, async () => {
    const other = (await load()) as typeof Package

    test('the error is an instance of StoreUnavailableError', () => {
      assert.notEqual(other.StoreUnavailableError, StoreUnavailableError)
      assert.ok(new other.StoreUnavailableError() instanceof StoreUnavailableError)
      assert.ok(new StoreUnavailableError() instanceof other.StoreUnavailableError)
    })

    for (const isOutcomeUnknown of [false, true]) {
      test(`results in ${isOutcomeUnknown ? 50301 : 50300} with Retry-After`, async (t) => {
        const create = (): never => {
          throw new other.StoreUnavailableError('away', { isOutcomeUnknown })
        }
        const server = await servePlants(t, { store: { ...memoryStore(), create }, onError })
        const { status, headers, body } = await sendRequest(server, post('ada', BODY))
        assert.equal(status, 503)
        assert.equal(headers['retry-after'], '1')
        assert.equal((JSON.parse(body) as { error: number }).error, isOutcomeUnknown ? 50301 : 50300)
      })
    }
  })

  test(`a service from ${place} works with a store from this copy and realm`, async (t) => {
    const { createPlantStore } = (await load()) as typeof Package
    const store = memoryStore()
    for (let id = 0n; id < 2500n; id++) void store.create('ada', { id, name: 'Fern', tag: 'green' })
    const server = await serve(t, createPlantStore({ store, tokens: new Map(Object.entries(tokens)) }))
    assert.equal((await sendRequest(server, post('ada', '{"id":-1,"name":"Monstera"}'))).status, 200)
    const { body } = await sendRequest(server, get('ada'))
    const plants = JSON.parse(body) as unknown[]
    assert.equal(plants.length, 2501)
    assert.deepEqual(plants.slice(0, 2), [{ name: 'Monstera' }, { name: 'Fern', tag: 'green' }])
  })
}

suite('instanceof StoreUnavailableError', () => {
  class Away extends StoreUnavailableError {}
  const BRAND = Symbol.for('plant-store.StoreUnavailableError')
  const revoked = Proxy.revocable({}, {})
  revoked.revoke()

  for (const [name, value] of [
    ['another error', new Error('away')],
    ['an error with the same name', Object.assign(new Error('away'), { name: 'StoreUnavailableError' })],
    ['an error with a different value of the brand', Object.assign(new Error('away'), { [BRAND]: true })],
    ['a proxy that has every property', new Proxy(() => undefined, { get: () => BRAND })],
    ['a revoked proxy', revoked.proxy],
    ['undefined', undefined],
  ] as const) {
    test(`returns false for ${name}`, () => assert.equal(value instanceof StoreUnavailableError, false))
  }

  test('returns true for an instance of a subclass', () => {
    assert.ok(new Away() instanceof StoreUnavailableError)
    assert.ok(new Away() instanceof Away)
    assert.equal(new StoreUnavailableError() instanceof Away, false)
  })
})

suite('a service in another realm', async () => {
  const { exports, evaluate } = await loadInRealm(INDEX)
  const other = exports as typeof Package

  test('a service in another realm accepts promises from this realm', async (t) => {
    const plants = other.memoryStore()
    const store: Store = {
      create: (owner, plant) => Promise.resolve(plants.create(owner, plant)),
      list: (owner, page) => Promise.resolve(plants.list(owner, page)),
      delete: (owner, id) => Promise.resolve(plants.delete(owner, id)),
    }
    const authenticate = (token: string): Promise<string> => Promise.resolve(token)
    const server = await serve(t, other.createPlantStore({ store, authenticate }))
    assert.equal((await sendRequest(server, post('ada', BODY))).status, 200)
    assert.equal((await sendRequest(server, get('ada'))).body, '[{"name":"Monstera"}]')
  })

  test('a service in another realm accepts token holders from this realm', async (t) => {
    const holder = evaluate('({ owner: "ada", access: "read" })') as Package.TokenHolder
    const server = await servePlants(t, { tokens: { reader: holder } })
    assert.equal((await sendRequest(server, post('reader', BODY))).status, 403)
    const options = { tokens: { reader: { owner: 'ada', access: 'read' } as const } }
    const otherServer = await serve(t, other.createPlantStore(options))
    assert.equal((await sendRequest(otherServer, post('reader', BODY))).status, 403)
  })
})
