import type { Pool } from 'pg'

/** Has the table refuse plants as if the disk were full. What it returns makes room again. */
export async function fillUp(pool: Pool): Promise<() => Promise<unknown>> {
  await pool.query(`
    CREATE FUNCTION be_full() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'; END $$;
    CREATE TRIGGER be_full BEFORE INSERT ON plant_store_plants FOR EACH ROW EXECUTE FUNCTION be_full()`)
  return () => pool.query('DROP FUNCTION IF EXISTS be_full CASCADE')
}
