/** What a connection is asked. */
export interface Statement {
  /** The name under which connections keep it prepared, if they do. */
  readonly name?: string
  readonly text: string
  /** Whether it changes plants. */
  readonly isWrite?: true
  /** Whether it needs room for more plants. */
  readonly isCreate?: true
}

/** Makes the table of the store, for a host that makes its tables itself. */
export const schema = `CREATE TABLE IF NOT EXISTS plant_store_plants (
  owner text NOT NULL,
  id bigint NOT NULL,
  name text NOT NULL,
  tag text,
  PRIMARY KEY (owner, id)
)`

/** Gives the table if it is there, else NULL. A role that may not create tables may ask this. */
export const FIND_TABLE: Statement = { text: `SELECT to_regclass('plant_store_plants')` }

/**
 * Change nothing, and fail if a create or delete would: on a standby, behind a lock, or without the right to.
 * CockroachDB does not take both in one statement.
 */
export const PING: readonly Statement[] = [
  { text: 'DELETE FROM plant_store_plants WHERE false' },
  { text: `INSERT INTO plant_store_plants (owner, id, name) SELECT '', 0, '' WHERE false` },
]

/**
 * Creates a plant of an owner that no token stands for, and deletes it. The driver sends both statements as one text,
 * which the server runs in one transaction: no other session sees the plant, and an error leaves no transaction open.
 * @param id another one each time: tries with the same id would wait for each other
 */
export function tryWrite(id: number): Statement {
  // Not much fits beside such a plant on a page of the table, so it says whether the server gets another page.
  return {
    isWrite: true,
    text: `INSERT INTO plant_store_plants (owner, id, name) VALUES ('', ${id}, repeat('x', 1900));
      DELETE FROM plant_store_plants WHERE owner = '' AND id = ${id}`,
  }
}

// For one plant: without unnest(), the sort and the returned row it takes less time.
export const CREATE_ONE: Statement = {
  isWrite: true,
  isCreate: true,
  name: 'plant-store create one',
  text: `INSERT INTO plant_store_plants (owner, id, name, tag) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`,
}

// In the order of the key, so that statements of several processes wait for each other but never in a circle; then in
// the order of arrival, so that the first create of an id wins.
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

// In the order of the key, too. LIMIT leaves nothing out: it makes the planner expect few keys, and look each up in the
// index. A plan that was made while the table was small would otherwise go on scanning the table when it has grown.
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

// NULL stands in for the texts of a large plant: a page of such plants could have any size. Their length is known
// without reading them.
export const LIST: Statement = {
  name: 'plant-store list',
  text: `SELECT id,
      CASE WHEN octet_length(name) < ${LARGE_BYTES} AND coalesce(octet_length(tag), 0) < ${LARGE_BYTES} THEN name END,
      CASE WHEN octet_length(tag) < ${LARGE_BYTES} THEN tag END
    FROM plant_store_plants WHERE owner = $1 AND id >= $2 ORDER BY id LIMIT $3`,
}

/** A page that ends with the plant that brings it to $4 bytes. Counting them costs the server half as much again. */
export const LIST_LARGE: Statement = {
  name: 'plant-store list large',
  text: `SELECT id, name, tag
    FROM (
      SELECT id, name, tag, sum(octet_length(name) + coalesce(octet_length(tag), 0))
        OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
      FROM (SELECT id, name, tag FROM plant_store_plants WHERE owner = $1 AND id >= $2 ORDER BY id LIMIT $3) AS plants
    ) AS plants
    WHERE (bytes_before >= $4) IS NOT TRUE ORDER BY id`,
}
