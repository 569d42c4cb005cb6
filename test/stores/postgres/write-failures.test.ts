// Writes that fail because of the database, and how they affect health checks and responses.
import assert from 'node:assert/strict'
import { after, suite, test, type TestContext } from 'node:test'
import { StoreUnavailableError } from '../../../src/plants/store.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { readDocument } from '../../support/package/documents.ts'
import { captureUnavailable, captureError } from '../../support/database/errors.ts'
import { skipWithoutPostgres, openDatabase } from '../../support/database/postgres-database.ts'

const database = await openDatabase({ after })
const pool = database.openPool()
await postgresStore(pool).migrate()

const createPlant = (id: number, name = 'fern') => ({ id: BigInt(id), name })

/** Adds a trigger that raises a SQLSTATE, until the test ends or the returned function is called. */
async function injectFailure(t: TestContext, code: string, when = 'BEFORE INSERT', kind = 'TRIGGER') {
  await pool.query(`CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'raised' USING ERRCODE = '${code}'; END $$`)
  await pool.query(`CREATE ${kind} failing ${when} ON plant_store_plants
    ${kind === 'TRIGGER' ? '' : 'DEFERRABLE INITIALLY DEFERRED'} FOR EACH ROW EXECUTE FUNCTION fail()`)
  const end = () => pool.query('DROP FUNCTION IF EXISTS fail CASCADE')
  t.after(end)
  return end
}

type Outcome = 'fault' | 'nothing done' | 'unknown'

function classifyError(error: unknown, code: string): Outcome {
  if (error instanceof StoreUnavailableError) {
    assert.equal((error.cause as { code?: string }).code, code)
    return error.isOutcomeUnknown ? 'unknown' : 'nothing done'
  }
  assert.equal((error as { code?: string }).code, code)
  return 'fault'
}

/** The outcome that a client gets for each SQLSTATE that a trigger raises. */
const CODES: Readonly<Record<Outcome, string>> = {
  'nothing done':
    '08001 25P02 40001 40P01 53000 53100 53200 53300 53400 55006 55P03 57000 57014 57P03 58000 58P01 58P02 72000 25006',
  unknown: '08000 08003 08006 08P01 25P03 25P04 40003 57P01 57P02 57P04 57P05 58030',
  fault:
    '0A000 0L000 21000 25000 25P01 28000 2F000 38000 39000 3D000 3F000 42501 42601 42703 42883 42P01 42P10 44000 54000 ' +
    '54001 54011 55000 55P02 EPIPE F0000 HV000 P0001 P0004 XX000 XX001 XX002',
}

suite('a database error makes the store unready until a write succeeds', () => {
  for (const [expected, codes] of Object.entries(CODES)) {
    for (const code of codes.split(' ')) {
      test(`${code} (outcome: ${expected})`, async (t) => {
        const store = postgresStore(pool)
        await store.ping()
        const end = await injectFailure(t, code)
        assert.equal(classifyError(await captureError(store.create('ann', createPlant(1))), code), expected)
        assert.notEqual(await captureError(store.ping()), undefined, 'ready although no plant can be created')
        await end()
        assert.equal(await store.create('ann', createPlant(1)), true)
        await store.ping()
        await store.delete('ann', 1n)
        assert.deepEqual((await pool.query('SELECT owner FROM plant_store_plants')).rows, [])
      })
    }
  }
})

suite('the store stays ready if the database rejects a value', () => {
  for (const code of ['22001', '22021', '23502', '23503', '23505', '23514', '23P01']) {
    test(code, async (t) => {
      const store = postgresStore(pool)
      await injectFailure(t, code)
      assert.equal(classifyError(await captureError(store.create('ann', createPlant(1))), code), 'fault')
      await store.ping()
    })
  }
})

test('an error at commit makes the outcome of a write unknown', async (t) => {
  const store = postgresStore(pool)
  const end = await injectFailure(t, '58030', 'AFTER INSERT', 'CONSTRAINT TRIGGER')
  const { isOutcomeUnknown } = await captureUnavailable(store.create('ann', createPlant(1)))
  assert.equal(isOutcomeUnknown, true)
  assert.equal((await captureUnavailable(store.ping())).isOutcomeUnknown, true)
  await end()
  await assert.rejects(store.ping())
  assert.equal(await store.create('ann', createPlant(1)), true)
  await store.ping()
  await store.delete('ann', 1n)
})

test('failing deletes make the store unready even if creates succeed', async (t) => {
  const store = postgresStore(pool)
  await store.create('ann', createPlant(1))
  const end = await injectFailure(t, 'XX000', 'BEFORE DELETE')
  await assert.rejects(store.delete('ann', 1n), { code: 'XX000' })
  assert.equal(await store.create('ann', createPlant(2)), true)
  await assert.rejects(store.ping(), { code: 'XX000' })
  await end()
  await store.delete('ann', 1n)
  await store.ping()
  await store.delete('ann', 2n)
})

test('a successful write probe leaves no rows and is not repeated', async (t) => {
  const store = postgresStore(pool)
  const end = await injectFailure(t, '58000')
  await captureUnavailable(store.create('ann', createPlant(1)))
  await end()
  await pool.query(`CREATE TABLE seen (owner text); CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO seen VALUES (NEW.owner); RETURN NEW; END $$`)
  await pool.query('CREATE TRIGGER noting BEFORE INSERT ON plant_store_plants FOR EACH ROW EXECUTE FUNCTION note()')
  t.after(() => pool.query('DROP FUNCTION note CASCADE; DROP TABLE seen'))
  for (let count = 0; count < 3; count++) await store.ping()
  assert.deepEqual((await pool.query('SELECT owner FROM seen')).rows, [{ owner: '' }])
  assert.deepEqual((await pool.query('SELECT owner FROM plant_store_plants')).rows, [])
})

test('a batch is not split after an error that affects every plant', async (t) => {
  let statements = 0
  const own = database.openPool()
  const counting = {
    async connect() {
      const connection = await own.connect()
      const query = connection.query.bind(connection) as (query: object) => Promise<never>
      const count = (asked: { text: string }) => {
        if (asked.text.includes('plants (owner, id, name, tag)')) statements++
        return query(asked)
      }
      return new Proxy(connection, {
        get: (target, name) => (name === 'query' ? count : (Reflect.get(target, name) as unknown)),
      })
    },
  }
  const store = postgresStore(counting)
  await injectFailure(t, '54000')
  const creates = Array.from({ length: 129 }, (_, id) => store.create('ann', createPlant(id)))
  const outcomes = await Promise.all(creates.map((create) => captureError(create)))
  assert.deepEqual(new Set(outcomes.map((error) => (error as { code: string }).code)), new Set(['54000']))
  assert.doesNotMatch(String(outcomes[0]), /owner is too long/)
  // The first create is sent alone, and the others in two batches.
  assert.equal(statements, 3)
})

test(
  'a batch creates all plants except one that a row-level security policy rejects',
  { skip: skipWithoutPostgres },
  async (t) => {
    const role = `${database.config.database}_policy`
    await pool.query(`CREATE ROLE ${role} LOGIN; GRANT SELECT, INSERT, DELETE ON plant_store_plants TO ${role};
    ALTER TABLE plant_store_plants ENABLE ROW LEVEL SECURITY;
    CREATE POLICY own ON plant_store_plants USING (true) WITH CHECK (name <> 'weed')`)
    const own = database.openPool({ user: role })
    t.after(async () => {
      await own.end()
      await pool.query(`ALTER TABLE plant_store_plants DISABLE ROW LEVEL SECURITY; DROP POLICY own ON plant_store_plants;
      DELETE FROM plant_store_plants; REVOKE ALL ON plant_store_plants FROM ${role}; DROP ROLE ${role}`)
    })
    const store = postgresStore(own, { maxInFlight: 1 })
    const blocker = store.create('ann', createPlant(9))
    const names = ['a', 'weed', 'c', 'd']
    const created = await Promise.allSettled(names.map((name, id) => store.create('ann', createPlant(id, name))))
    await blocker
    assert.deepEqual(
      created.map((each) => ('value' in each ? each.value : (each.reason as { code: string }).code)),
      [true, '42501', true, true],
    )
  },
)

suite('a batch creates all plants except a plant whose row is too large', () => {
  const index = (definition: string) => [
    `CREATE INDEX by_name ON plant_store_plants ${definition}`,
    'DROP INDEX by_name',
  ]
  const storage = (kind: string) => `ALTER TABLE plant_store_plants ALTER name SET STORAGE ${kind}`
  for (const [name, [sql, undo]] of Object.entries({
    'for a B-tree index': index('(name)'),
    'for a GIN index': index('USING gin ((ARRAY[name]))'),
    'for a BRIN index': index('USING brin (name)'),
    'for a table that stores text in its rows (STORAGE PLAIN)': [storage('PLAIN'), storage('EXTENDED')],
  })) {
    test(name, async (t) => {
      await pool.query(sql!)
      t.after(() => pool.query(`${undo}; DELETE FROM plant_store_plants`))
      const store = postgresStore(pool)
      // The server can't compress random text. A BRIN index stores only names outside of the range of earlier names.
      const length = name.includes('GIN') ? 5000 : 13_000
      const long = 'z'.concat(...Array.from({ length }, () => Math.random().toString(36)[2]!))
      const blocker = store.create('ann', createPlant(0))
      const created = ['a', long, 'c'].map((name, at) => captureError(store.create('ann', createPlant(at + 1, name))))
      await blocker
      const [first, second, third] = await Promise.all(created)
      assert.deepEqual([first, (second as { code?: string }).code, third], [undefined, '54000', undefined])
      await store.ping()
    })
  }
})

suite('persistent server problems', { skip: skipWithoutPostgres }, () => {
  test('the store is unready until a revoked privilege is granted again', async (t) => {
    const role = `${database.config.database}_clerk`
    await pool.query(`CREATE ROLE ${role} LOGIN; GRANT SELECT, INSERT, DELETE ON plant_store_plants TO ${role}`)
    const own = database.openPool({ user: role })
    t.after(async () => {
      await own.end()
      await pool.query(`REVOKE ALL ON plant_store_plants FROM ${role}; DROP ROLE ${role}`)
    })
    const store = postgresStore(own)
    await store.create('ann', createPlant(1))
    await pool.query(`REVOKE INSERT ON plant_store_plants FROM ${role}`)
    await assert.rejects(store.create('ann', createPlant(2)), { code: '42501' })
    await assert.rejects(store.ping(), { code: '42501' })
    await pool.query(`GRANT INSERT ON plant_store_plants TO ${role}`)
    assert.equal(await store.create('ann', createPlant(2)), true)
    await store.ping()
    await Promise.all([1n, 2n].map((id) => store.delete('ann', id)))
  })

  test('the store is unready until a dropped table is recreated', async () => {
    const store = postgresStore(pool)
    await store.create('ann', createPlant(1))
    await pool.query('DROP TABLE plant_store_plants')
    await assert.rejects(store.create('ann', createPlant(2)), { code: '42P01' })
    await assert.rejects(store.ping(), { code: '42P01' })
    await store.migrate()
    assert.equal(await store.create('ann', createPlant(2)), true)
    await store.ping()
    await store.delete('ann', 2n)
  })
})

test('docs/postgres.md states the actual error code for each SQLSTATE', () => {
  const { text } = readDocument('docs/postgres.md')
  const rows = [...text.matchAll(/^\| ((?:`\w+`(?:, )?)+) \|.*\| (50\d\d\d) \|$/gm)]
  const documented = new Map(rows.flatMap(([, codes, error]) => codes!.match(/\w+/g)!.map((code) => [code, error])))
  /** Looks up the SQLSTATE, or its class if only the class is listed. */
  const errorOf = (code: string) => documented.get(code) ?? documented.get(code.slice(0, 2)) ?? '50000'
  const ERRORS: Readonly<Record<string, string>> = { 'nothing done': '50300', unknown: '50301', fault: '50000' }
  for (const [outcome, codes] of Object.entries(CODES)) {
    for (const code of codes.split(' ')) assert.equal(errorOf(code), ERRORS[outcome], code)
  }
})
