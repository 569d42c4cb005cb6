import type { Send } from './send.ts'

/** A change of the table. Several processes can apply it at the same time, so its SQL must be idempotent. */
interface Migration {
  /** A column that the migration adds: if the table has it, the migration has been applied. */
  readonly column: string
  readonly sql: (table: string) => string
}

/**
 * All migrations, oldest first. Processes of the previous version keep running, so a new column must be nullable or have
 * a default: `ALTER TABLE … ADD COLUMN IF NOT EXISTS`.
 */
export const MIGRATIONS: readonly [Migration, ...Migration[]] = [
  {
    column: 'owner',
    sql: (table) => `CREATE TABLE IF NOT EXISTS ${table} (
  owner text COLLATE "C" NOT NULL,
  id bigint NOT NULL,
  name text NOT NULL,
  tag text,
  PRIMARY KEY (owner, id)
)`,
  },
]

/** Applies the migrations that the table lacks. Without any, it only needs the privilege to connect. */
export async function applyMigrations(send: Send, table: string, migrations = MIGRATIONS): Promise<void> {
  const text = 'SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($1) AND NOT attisdropped'
  const columns = (await send({ text }, [table])).rows.flat()
  for (const { sql } of migrations.filter(({ column }) => !columns.includes(column))) {
    // `IF NOT EXISTS` fails if another process is doing the same at this moment. The second attempt succeeds.
    await send({ text: sql(table) }, []).catch(() => send({ text: sql(table) }, []))
  }
}
