export interface Statement {
  readonly name?: string
  readonly text: string
  /** What it writes, if anything: only new plants need room. */
  readonly writes?: 'plants' | 'other'
}

/** Makes the table of the store, for a host that makes its tables itself. */
export const schema = `CREATE TABLE IF NOT EXISTS plant_store_plants (
  owner text NOT NULL,
  id bigint NOT NULL,
  name text NOT NULL,
  tag text,
  PRIMARY KEY (owner, id)
)`

const TEXT = `'text', 'character varying'`

/** Of views and of partitions on other servers nobody knows the keys. */
export const LOOK: Statement = {
  text: `
  WITH plants AS (SELECT oid, relkind, relnamespace FROM pg_class WHERE oid = to_regclass('plant_store_plants'))
  SELECT current_setting('transaction_read_only'), current_setting('server_encoding'),
    current_setting('client_encoding'), EXISTS (SELECT 1 FROM pg_foreign_table),
    (SELECT relnamespace::regnamespace FROM plants),
    concat_ws('; ', (
      SELECT string_agg(CASE
          WHEN attname IS NULL THEN 'it has no column ' || needed
          WHEN format_type(atttypid, atttypmod) NOT IN (type, same_type)
            THEN 'its column ' || needed || ' is ' || format_type(atttypid, atttypmod) || ', not ' || type
          WHEN needed = 'tag' AND attnotnull THEN 'its column tag is NOT NULL'
          WHEN needed = 'owner' AND NOT collisdeterministic
            THEN 'its column owner has the collation ' || collname || ', which takes some owners for the same'
        END, '; ' ORDER BY needed)
      FROM plants
        CROSS JOIN (VALUES ('owner', ${TEXT}), ('id', 'bigint', 'bigint'), ('name', ${TEXT}), ('tag', ${TEXT}))
          AS columns (needed, type, same_type)
        LEFT JOIN pg_attribute ON attrelid = plants.oid AND attname = needed
        LEFT JOIN pg_collation ON pg_collation.oid = attcollation
    ), (
      SELECT 'it has no unique index on (owner, id) that is not deferrable' FROM plants
      WHERE (relkind = 'r' OR (relkind = 'p' AND NOT EXISTS (SELECT 1 FROM pg_foreign_table))) AND NOT EXISTS (
        SELECT 1 FROM pg_index
        WHERE indrelid = plants.oid AND indisunique AND indimmediate AND indisvalid AND indpred IS NULL
          AND indnkeyatts = 2 AND 2 = (
            SELECT count(*) FROM pg_attribute
            WHERE attrelid = indrelid AND attname IN ('owner', 'id') AND attnum IN (indkey[0], indkey[1])
          )
      )
    ))`,
}

export const FIND_TABLE: Statement = { text: `SELECT to_regclass('plant_store_plants')` }

const INSERT = 'INSERT INTO plant_store_plants (owner, id, name, tag)'

/** Change nothing, and fail if a create or delete would. CockroachDB does not take both in one statement. */
export const PING: readonly Statement[] = [
  { text: 'DELETE FROM plant_store_plants WHERE false' },
  { text: `${INSERT} SELECT '', 0, '', NULL WHERE false ON CONFLICT DO NOTHING` },
]

/** Creates and deletes nobody's plant as one text: in one transaction. Tries with one id would wait for each other. */
export function tryWrite(id: number): Statement {
  // Not much fits beside such a plant on a page of the table, so it says whether the server gets another page.
  return {
    writes: 'other',
    text: `${INSERT} VALUES ('', ${id}, repeat('x', 1900), NULL) ON CONFLICT DO NOTHING;
      DELETE FROM plant_store_plants WHERE owner = '' AND id = ${id}`,
  }
}

// For one plant: without unnest(), the sort and the returned row it takes less time.
export const CREATE_ONE: Statement = {
  writes: 'plants',
  name: 'plant-store create one',
  text: `${INSERT} VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
}

// In the order of the key, so that statements never wait in a circle; then of arrival, so that the first create wins.
export const CREATE_MANY: Statement = {
  writes: 'plants',
  name: 'plant-store create many',
  text: `${INSERT}
    SELECT owner, id, name, tag
    FROM unnest($1::text[], $2::int8[], $3::text[], $4::text[])
      WITH ORDINALITY AS plants (owner, id, name, tag, position)
    ORDER BY owner, id, position
    ON CONFLICT DO NOTHING
    RETURNING owner, id`,
}

export const DELETE_ONE: Statement = {
  writes: 'other',
  name: 'plant-store delete one',
  text: `DELETE FROM plant_store_plants WHERE owner = $1 AND id = $2`,
}

// In that order, too. LIMIT makes the planner expect few keys: a plan of a small table would scan it once it has grown.
export const DELETE_MANY: Statement = {
  writes: 'other',
  name: 'plant-store delete many',
  text: `DELETE FROM plant_store_plants AS plants
    USING (
      SELECT owner, id FROM unnest($1::text[], $2::int8[]) AS keys (owner, id)
      ORDER BY owner, id LIMIT array_length($1::text[], 1)
    ) AS keys
    WHERE plants.owner = keys.owner AND plants.id = keys.id
    RETURNING plants.owner, plants.id`,
}

export const LARGE_BYTES = 1024

// NULL stands for the texts of a large plant: a page of such could have any size. Lengths are known without reading.
export const LIST: Statement = {
  name: 'plant-store list',
  text: `SELECT id,
      CASE WHEN octet_length(name) < ${LARGE_BYTES} AND coalesce(octet_length(tag), 0) < ${LARGE_BYTES} THEN name END,
      CASE WHEN octet_length(tag) < ${LARGE_BYTES} THEN tag END
    FROM plant_store_plants WHERE owner = $1 AND id >= $2 ORDER BY id LIMIT $3`,
}

/**
 * A page that ends with the plant that brings it to $4 bytes. Counting them costs the server half as much again. The
 * last column is whether another plant follows within the $3 that were read.
 */
export const LIST_LARGE: Statement = {
  name: 'plant-store list large',
  text: `SELECT id, name, tag, is_followed
    FROM (
      SELECT id, name, tag, lead(id) OVER (ORDER BY id) IS NOT NULL AS is_followed, sum(octet_length(name) + coalesce(octet_length(tag), 0))
        OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
      FROM (SELECT id, name, tag FROM plant_store_plants WHERE owner = $1 AND id >= $2 ORDER BY id LIMIT $3) AS plants
    ) AS plants
    WHERE (bytes_before >= $4) IS NOT TRUE ORDER BY id`,
}
