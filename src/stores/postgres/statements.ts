import type { Query } from './pool.ts'
import { EQ, GE, IS_VOLATILE, LT, ON_PRIMARY, TEXT } from './sql-fragments.ts'

/** Properties of the table and the server that the text of a statement depends on. */
export interface Table {
  readonly schema: string
  /** Whether each write must reset the commit settings of its session: see {@link RESET_COMMIT_SETTINGS}. */
  readonly resetsCommitSettings: boolean
}

/**
 * A statement that the store executes. Every member is required: if `name` were missing, the driver would read it from
 * a polluted `Object.prototype`.
 */
export interface Statement {
  /** The name of the prepared statement; undefined if the statement isn't prepared. */
  readonly name: string | undefined
  readonly text: (table: Table) => string
  /**
   * What the statement writes, if anything. Creates and deletes may fail independently of each other: only creates need
   * disk space.
   */
  readonly writes: 'plants' | 'other' | undefined
}

/** Creates a statement that writes nothing and isn't prepared. */
export const unprepared = (text: Statement['text']): Statement => ({ name: undefined, text, writes: undefined })

/** A query whose text depends on the properties of the table. */
export interface TableQuery extends Omit<Query, 'text'> {
  text: Statement['text']
}

/** The SQL that creates the table, for applications with migrations of their own. */
export const schema = `CREATE TABLE IF NOT EXISTS plant_store_plants (
  owner text COLLATE "C" NOT NULL,
  id bigint NOT NULL,
  name text NOT NULL,
  tag text,
  PRIMARY KEY (owner, id)
)`

const qualifiedNameOf = ({ schema }: Table): string => `"${schema.replaceAll('"', '""')}".plant_store_plants`

/**
 * A condition that is always true. Until the end of the transaction, it resets `synchronous_commit` to the session's
 * default (NULL), and enables the warning about a commit that the standby didn't confirm. Another client of a
 * connection pooler might have changed both settings.
 */
const RESET_COMMIT_SETTINGS = `pg_catalog.set_config('client_min_messages', 'warning', true) IS NOT NULL
    AND pg_catalog.set_config('synchronous_commit', NULL, true) IS NOT NULL`

const resetCommitSettings = (keyword: 'WHERE' | 'AND', { resetsCommitSettings }: Table): string =>
  resetsCommitSettings ? `${keyword} ${RESET_COMMIT_SETTINGS}` : ''

/** Fails with 42P01 if the table doesn't exist. Requires no privilege on the table. */
export const TABLE_EXISTS: Statement = unprepared(
  // In an E'' string, backslashes have the same meaning whether `standard_conforming_strings` is on or off.
  (table) =>
    `${ON_PRIMARY} SELECT E'${qualifiedNameOf(table).replace(/['\\]/g, '$&$&')}'::pg_catalog.regclass::${TEXT} WHERE ${IS_VOLATILE}`,
)

export const CREATE_TABLE: Statement = unprepared((table) =>
  schema.replace('plant_store_plants', () => qualifiedNameOf(table)),
)

const insertInto = (table: Table): string => `INSERT INTO ${qualifiedNameOf(table)} (owner, id, name, tag)`

/**
 * Two statements that change nothing, but fail if a create, a delete or a list would fail. RETURNING checks the
 * privilege to read the columns, and fails if the table has a rule with DO INSTEAD NOTHING. The two are separate
 * because CockroachDB rejects a single statement that deletes and inserts.
 */
export const CHECK_WRITABLE: readonly Statement[] = [
  unprepared((table) => `DELETE FROM ${qualifiedNameOf(table)} WHERE false RETURNING owner, id, name, tag`),
  unprepared((table) => {
    return `${insertInto(table)} SELECT '', 0, '', NULL WHERE false ON CONFLICT DO NOTHING RETURNING owner, id`
  }),
]

/**
 * Returns a statement that creates and deletes a plant in one transaction, for an owner that can't exist.
 * @param id a random id, because probes from several processes would wait for each other if they had the same id
 */
export function probeWrite(id: number): Statement {
  // A page of the table has space for only a few such plants, so this fails soon if the server can't allocate another
  // page.
  return {
    writes: 'other',
    name: undefined,
    text: (
      table,
    ) => `${insertInto(table)} VALUES ('', ${id}, pg_catalog.repeat('x', 1900), NULL) ON CONFLICT DO NOTHING;
      DELETE FROM ${qualifiedNameOf(table)} WHERE owner ${EQ} '' AND id ${EQ} ${id}`,
  }
}

// For a single plant, this is faster than CREATE_MANY: there is no unnest(), sort or returned row.
export const CREATE_ONE: Statement = {
  writes: 'plants',
  name: 'plant-store create one',
  text(table) {
    const values = table.resetsCommitSettings
      ? `SELECT $1, $2, $3, $4 ${resetCommitSettings('WHERE', table)}`
      : 'VALUES ($1, $2, $3, $4)'
    return `${insertInto(table)} ${values} ON CONFLICT DO NOTHING`
  },
}

// Sorts by key, so that concurrent statements can't deadlock, and then by position, so that the first create of an id
// wins. A separate array says which plants have a tag, because with `array_nulls` off an array can't contain NULL.
// unnest() isn't qualified: with several arrays, it's special syntax, and always the server's own function.
export const CREATE_MANY: Statement = {
  writes: 'plants',
  name: 'plant-store create many',
  text: (table) => `${insertInto(table)}
    SELECT owner, id, name, CASE WHEN has_tag THEN tag END
    FROM unnest($1::${TEXT}[], $2::pg_catalog.int8[], $3::${TEXT}[], $4::${TEXT}[], $5::pg_catalog.bool[])
      WITH ORDINALITY AS plants (owner, id, name, tag, has_tag, position)
    ${resetCommitSettings('WHERE', table)}
    ORDER BY owner, id, position
    ON CONFLICT DO NOTHING
    RETURNING owner::${TEXT}, id::${TEXT}`,
}

export const DELETE_ONE: Statement = {
  writes: 'other',
  name: 'plant-store delete one',
  text: (table) =>
    `DELETE FROM ${qualifiedNameOf(table)} WHERE owner ${EQ} $1 AND id ${EQ} $2 ${resetCommitSettings('AND', table)}`,
}

// Sorts by key, as CREATE_MANY does. The LIMIT makes the planner expect few keys. Otherwise, a plan that was cached
// while the table was small would still scan the whole table after it has grown.
export const DELETE_MANY: Statement = {
  writes: 'other',
  name: 'plant-store delete many',
  text: (table) => `DELETE FROM ${qualifiedNameOf(table)} AS plants
    USING (
      SELECT owner, id FROM unnest($1::${TEXT}[], $2::pg_catalog.int8[]) AS keys (owner, id) ${resetCommitSettings('WHERE', table)}
      ORDER BY owner, id LIMIT pg_catalog.array_length($1::${TEXT}[], 1)
    ) AS keys
    WHERE plants.owner ${EQ} keys.owner AND plants.id ${EQ} keys.id
    RETURNING plants.owner::${TEXT}, plants.id::${TEXT}`,
}

/** LIST returns NULL instead of names and tags of at least this size. */
export const LARGE_TEXT_BYTES = 1024

const NAME_BYTES = 'pg_catalog.octet_length(plants.name)'
const TAG_BYTES = 'pg_catalog.octet_length(plants.tag)'
const PAGE_CLAUSE = `WHERE plants.owner ${EQ} $1 AND plants.id ${GE} $2 AND ${IS_VOLATILE} ORDER BY plants.id LIMIT $3`

// Returns NULL instead of the names and tags of large plants, which could make a page huge. The server knows the length
// of a string without reading it. Ids are cast to text, so that they're the same even if the driver requests results in
// binary format.
export const LIST: Statement = {
  writes: undefined,
  name: 'plant-store list',
  text: (table) => `${ON_PRIMARY} SELECT plants.id::${TEXT},
      CASE WHEN ${NAME_BYTES} ${LT} ${LARGE_TEXT_BYTES} AND COALESCE(${TAG_BYTES}, 0) ${LT} ${LARGE_TEXT_BYTES} THEN plants.name END,
      CASE WHEN ${TAG_BYTES} ${LT} ${LARGE_TEXT_BYTES} THEN plants.tag END
    FROM ${qualifiedNameOf(table)} AS plants ${PAGE_CLAUSE}`,
}

/**
 * Returns a page that ends once its names and tags total $4 bytes. The server takes 1.5 times as long as for LIST,
 * because it counts the bytes. The last column says whether another plant follows among the $3 plants that were read.
 */
export const LIST_LARGE: Statement = {
  writes: undefined,
  name: 'plant-store list large',
  text: (table) => `${ON_PRIMARY} SELECT plants.id::${TEXT}, plants.name, plants.tag,
      CASE WHEN plants.is_followed THEN 't' ELSE 'f' END
    FROM (
      SELECT plants.id, plants.name, plants.tag,
        pg_catalog.lead(plants.id) OVER (ORDER BY plants.id) IS NOT NULL AS is_followed,
        pg_catalog.sum(${NAME_BYTES} OPERATOR(pg_catalog.+) COALESCE(${TAG_BYTES}, 0))
          OVER (ORDER BY plants.id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
      FROM (SELECT plants.id, plants.name, plants.tag FROM ${qualifiedNameOf(table)} AS plants ${PAGE_CLAUSE}) AS plants
    ) AS plants
    WHERE (plants.bytes_before ${GE} $4) IS NOT TRUE ORDER BY plants.id`,
}
