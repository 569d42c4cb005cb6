/** What a pool is asked. */
export interface Statement {
  /** Under which its connections keep it prepared, if they do. */
  readonly name?: string
  readonly text: string
  /** Whether it changes plants. */
  readonly isWrite?: true
  /** Whether it needs room for more of them. */
  readonly isCreate?: true
}

/** The table that the store needs, for a host that makes its tables itself. */
export const schema = `CREATE TABLE IF NOT EXISTS plant_store_plants (
  owner text NOT NULL,
  id bigint NOT NULL,
  name text NOT NULL,
  tag text,
  PRIMARY KEY (owner, id)
)`

/** Whether the table is there, for who may use it but not make it; NULL if not. */
export const FIND_TABLE: Statement = { text: `SELECT to_regclass('plant_store_plants')` }

/**
 * They change nothing, and fail if a create or a delete would: on a standby, without the right to, or behind a lock. Not
 * every engine takes both in one statement.
 */
export const PING: readonly Statement[] = [
  { text: 'DELETE FROM plant_store_plants WHERE false' },
  { text: `INSERT INTO plant_store_plants (owner, id, name) SELECT '', 0, '' WHERE false` },
]

/**
 * Writes a plant of an owner that nobody is, and removes it. Without a name and values, the driver sends both statements as
 * one text, which the server takes as one transaction. So no other session sees the plant, a pool that lends no connections
 * can do it too, and an error leaves no transaction open.
 * @param id should be another one each time: tries with the same one would wait for each other
 */
export function tryWrite(id: number): Statement {
  // Not much fits beside such a plant on a page of the table, so it says whether the server gets another page.
  return {
    isWrite: true,
    text: `INSERT INTO plant_store_plants (owner, id, name) VALUES ('', ${id}, repeat('x', 1900));
      DELETE FROM plant_store_plants WHERE owner = '' AND id = ${id}`,
  }
}

// One plant has a statement of its own: without unnest(), the sort and the returned row it takes less time.
export const CREATE_ONE: Statement = {
  isWrite: true,
  isCreate: true,
  name: 'plant-store create one',
  text: `INSERT INTO plant_store_plants (owner, id, name, tag) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
}

// In the order of the key, so that statements of several processes wait for each other but never in a
// circle; then in the order of arrival, so that the first create of an id is the one that stays.
export const CREATE_MANY: Statement = {
  isWrite: true,
  isCreate: true,
  name: 'plant-store create many',
  text: `INSERT INTO plant_store_plants (owner, id, name, tag)
    SELECT owner, id, name, tag
    FROM unnest($1::text[], $2::int8[], $3::text[], $4::text[])
      WITH ORDINALITY AS plants (owner, id, name, tag, position)
    ORDER BY owner, id, position
    ON CONFLICT DO NOTHING
    RETURNING owner, id`,
}

export const DELETE_ONE: Statement = {
  isWrite: true,
  name: 'plant-store delete one',
  text: `DELETE FROM plant_store_plants WHERE owner = $1 AND id = $2`,
}

// In the order of the key, too. LIMIT leaves nothing out: it has the planner expect few keys, and look each of them up
// in the index. Otherwise a plan that was made while the table was small scans it, and goes on doing so when it has
// grown.
export const DELETE_MANY: Statement = {
  isWrite: true,
  name: 'plant-store delete many',
  text: `DELETE FROM plant_store_plants AS plants
    USING (
      SELECT owner, id FROM unnest($1::text[], $2::int8[]) AS keys (owner, id)
      ORDER BY owner, id LIMIT array_length($1::text[], 1)
    ) AS keys
    WHERE plants.owner = keys.owner AND plants.id = keys.id
    RETURNING plants.owner, plants.id`,
}

/** Names and tags from this many bytes on are large. */
export const LARGE_BYTES = 1024

// The texts of a large plant are held back, and NULL comes in their place: a page of such plants could be of any size.
// Their length is known without reading them.
const SMALL_PLANTS = `
  SELECT
    id,
    CASE WHEN octet_length(name) < ${LARGE_BYTES} AND (tag IS NULL OR octet_length(tag) < ${LARGE_BYTES}) THEN name END,
    CASE WHEN octet_length(tag) < ${LARGE_BYTES} THEN tag END
  FROM plant_store_plants WHERE owner = $1`

export const LIST_FIRST: Statement = {
  name: 'plant-store list first',
  text: `${SMALL_PLANTS} ORDER BY id LIMIT $2`,
}

// A statement of its own: a lower bound for the first page would have each id compared with it, and the planner would
// expect a third of the plants.
export const LIST_AFTER: Statement = {
  name: 'plant-store list after',
  text: `${SMALL_PLANTS} AND id > $3 ORDER BY id LIMIT $2`,
}

/**
 * A page that ends with the plant with which it comes to $3 bytes. Counting them costs the server half as much again.
 * @param plants which plants may be listed
 */
const upToBytes = (plants: string): string => `
  SELECT id, name, tag
  FROM (
    SELECT id, name, tag, sum(octet_length(name) + coalesce(octet_length(tag), 0))
      OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
    FROM (SELECT id, name, tag FROM plant_store_plants WHERE ${plants} ORDER BY id LIMIT $2) AS plants
  ) AS plants
  WHERE (bytes_before >= $3) IS NOT TRUE ORDER BY id`

export const LIST_LARGE_FIRST: Statement = {
  name: 'plant-store list large first',
  text: upToBytes('owner = $1'),
}

export const LIST_LARGE_AFTER: Statement = {
  name: 'plant-store list large after',
  text: upToBytes('owner = $1 AND id > $4'),
}
