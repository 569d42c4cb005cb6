import type { Query } from './pool.ts'

/** Where the plants are, and how the server has to be addressed. */
export interface Table {
  readonly schema: string
  /** Whether each write must reset how its session commits, and enable the warning for a commit without its standby. */
  readonly resetsCommitSettings: boolean
}

/** Every member is required, because a driver would read an inherited name too. */
export interface Statement {
  /** The name under which it's prepared; undefined if it isn't. */
  readonly name: string | undefined
  readonly text: (table: Table) => string
  /** What it writes, if anything: only new plants need room. */
  readonly writes: 'plants' | 'other' | undefined
}

/** Creates a statement that writes nothing and isn't prepared. */
export const unprepared = (text: Statement['text']): Statement => ({ name: undefined, text, writes: undefined })

/** A statement that doesn't name the table. */
interface FixedStatement {
  readonly text: string
}

/** A query whose table isn't known yet. */
export interface TableQuery extends Omit<Query, 'text'> {
  text: Statement['text']
}

/** Makes the table of the store, for a host that makes its tables itself. */
export const schema = `CREATE TABLE IF NOT EXISTS plant_store_plants (
  owner text COLLATE "C" NOT NULL,
  id bigint NOT NULL,
  name text NOT NULL,
  tag text,
  PRIMARY KEY (owner, id)
)`

// Unqualified functions, operators and types could be found in a schema of the search_path that isn't the server's own.
const EQ = 'OPERATOR(pg_catalog.=)'
const NE = 'OPERATOR(pg_catalog.<>)'
const LT = 'OPERATOR(pg_catalog.<)'
const GE = 'OPERATOR(pg_catalog.>=)'
const TEXT = 'pg_catalog.text'

/**
 * Keep Pgpool-II from sending a query to a standby, which can lack plants that were acknowledged, and from caching it.
 * With `allow_sql_comments`, it ignores the comment, and takes a query for a write because of the volatile function.
 */
const ON_PRIMARY = '/*NO LOAD BALANCE*/'
const IS_VOLATILE = '(SELECT pg_catalog.random()) IS NOT NULL'

const qualifiedNameOf = ({ schema }: Table): string => `"${schema.replaceAll('"', '""')}".plant_store_plants`

/**
 * A condition that is always true. Until the transaction has been committed, it enables warnings and resets how the session
 * commits, in case another client of a pooler has changed that. NULL means the session's default.
 */
const RESET_COMMIT_SETTINGS = `pg_catalog.set_config('client_min_messages', 'warning', true) IS NOT NULL
    AND pg_catalog.set_config('synchronous_commit', NULL, true) IS NOT NULL`

const resetCommitSettings = (keyword: 'WHERE' | 'AND', { resetsCommitSettings }: Table): string =>
  resetsCommitSettings ? `${keyword} ${RESET_COMMIT_SETTINGS}` : ''

/** What a look at a new connection returns, as JSON. */
export interface TableInspection {
  readonly isReadOnly: boolean
  readonly serverEncoding: string
  readonly clientEncoding: string
  readonly hasForeignTables: boolean
  /** The schema of the table; null if there is no table. */
  readonly schema: string | null
  /** The schema where the session creates permanent tables; null if its search_path names none. */
  readonly currentSchema: string | null
  readonly problems: string
  /** Collations of the owner whose recorded version differs from the actual one. */
  readonly outdated: string | null
  /** The recorded version of the database's collation, if the owner uses that one, and PostgreSQL records it. */
  readonly databaseVersion: string | null
  /**
   * Whether a session may commit without waiting for the disk or its standby, or not report that: it is set so, or there
   * are standbys, and a pooler may lend a session that another client has set so. Never if other servers have the plants,
   * which report nothing.
   */
  readonly mayCommitEarly: boolean
  readonly isUnlogged: boolean
  readonly hasRowSecurity: boolean
  /** The collation of the owner if it isn't C. */
  readonly collation: string | null
}

const TEXT_TYPES = `'text', ARRAY['${TEXT}'::pg_catalog.regtype, 'pg_catalog.varchar'::pg_catalog.regtype]`
const OWNER_AND_ID = `ANY (ARRAY['owner', 'id'])`

/**
 * Looks at the server and at the table, in the schema `$1`, or where the search_path finds it if that is null. Views and
 * partitions on other servers don't expose their keys. Operator classes of bpchar ignore spaces at the end of an owner.
 *
 * Doesn't sort, because docs/scaling.md turns sorting off: the server would take the query for an expensive one, and
 * compile it for seconds.
 */
export const INSPECT_TABLE: FixedStatement = {
  text: `${ON_PRIMARY}
  WITH RECURSIVE candidates AS (
    SELECT c.oid, c.relkind, n.nspname,
      COALESCE(pg_catalog.array_position(pg_catalog.current_schemas(false), n.nspname), 0) AS position
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid ${EQ} c.relnamespace
    WHERE c.relname ${EQ} 'plant_store_plants' AND c.relpersistence ${NE} 't' AND CASE WHEN $1::${TEXT} IS NULL
      THEN n.nspname ${EQ} ANY (pg_catalog.current_schemas(false)) ELSE n.nspname::${TEXT} ${EQ} $1::${TEXT} END
  ), plants AS (
    SELECT * FROM candidates
    WHERE candidates.position ${EQ} (SELECT pg_catalog.min(candidates.position) FROM candidates)
  ), tables AS (
    SELECT DISTINCT pg_catalog.unnest(pg_catalog.array_append(
      ARRAY(SELECT tree.relid::pg_catalog.oid FROM pg_catalog.pg_partition_tree(plants.oid) AS tree), plants.oid
    )) AS oid FROM plants
  ), columns AS (
    SELECT a.* FROM tables JOIN pg_catalog.pg_attribute AS a ON a.attrelid ${EQ} tables.oid
    WHERE a.attnum OPERATOR(pg_catalog.>) 0 AND NOT a.attisdropped
  ), domains AS (
    SELECT columns.attrelid, columns.attnum, t.oid, t.typnotnull, t.typbasetype
    FROM columns JOIN pg_catalog.pg_type AS t ON t.oid ${EQ} columns.atttypid
    WHERE t.typtype ${EQ} 'd' AND t.typdefault IS NULL
    UNION ALL SELECT domains.attrelid, domains.attnum, t.oid, t.typnotnull, t.typbasetype
    FROM domains JOIN pg_catalog.pg_type AS t ON t.oid ${EQ} domains.typbasetype WHERE t.typtype ${EQ} 'd'
  ), required AS (
    SELECT columns.* FROM columns
    WHERE columns.attnotnull OR EXISTS (
      SELECT FROM domains LEFT JOIN pg_catalog.pg_constraint AS k ON k.contypid ${EQ} domains.oid
      WHERE domains.attrelid ${EQ} columns.attrelid AND domains.attnum ${EQ} columns.attnum AND (domains.typnotnull
        OR pg_catalog.starts_with(pg_catalog.pg_get_constraintdef(k.oid), 'CHECK ((VALUE IS NOT NULL))'))
    ) OR EXISTS (
      SELECT FROM pg_catalog.pg_constraint AS k
      WHERE k.conrelid ${EQ} columns.attrelid AND pg_catalog.starts_with(pg_catalog.pg_get_constraintdef(k.oid),
        pg_catalog.format('CHECK ((%I IS NOT NULL))', columns.attname))
    )
  ), indexes AS (
    SELECT i.*, c.relname, c.relispartition,
      i.indnkeyatts ${EQ} 2 AND NOT i.indisexclusion AND 2 ${EQ} (
        SELECT pg_catalog.count(*) FROM columns
        WHERE columns.attrelid ${EQ} i.indrelid AND columns.attname::${TEXT} ${EQ} ${OWNER_AND_ID}
          AND columns.attnum ${EQ} ANY (ARRAY[i.indkey[0], i.indkey[1]])
      ) AS is_on_key,
      NOT EXISTS (
        SELECT FROM pg_catalog.pg_collation AS l
        WHERE l.oid ${EQ} ANY (i.indcollation::pg_catalog.oid[]) AND NOT l.collisdeterministic
      ) AS is_exact,
      NOT EXISTS (
        SELECT FROM pg_catalog.pg_opclass AS o
        WHERE o.oid ${EQ} ANY (i.indclass::pg_catalog.oid[]) AND (
          o.opcintype ${EQ} 'pg_catalog.bpchar'::pg_catalog.regtype
          OR o.opcnamespace ${NE} 'pg_catalog'::pg_catalog.regnamespace
        )
      ) AS has_usual_operators
    FROM tables JOIN pg_catalog.pg_index AS i ON i.indrelid ${EQ} tables.oid
      JOIN pg_catalog.pg_class AS c ON c.oid ${EQ} i.indexrelid
    WHERE i.indisunique OR i.indisexclusion
  ), collations AS (
    SELECT l.* FROM pg_catalog.pg_collation AS l
    WHERE l.oid ${EQ} ANY (ARRAY(
        SELECT columns.attcollation FROM columns
        WHERE columns.attrelid ${EQ} (SELECT plants.oid FROM plants) AND columns.attname ${EQ} 'owner'
        UNION ALL SELECT pg_catalog.unnest(indexes.indcollation::pg_catalog.oid[]) FROM indexes WHERE indexes.is_on_key
      ))
  ), database AS (
    SELECT pg_catalog.jsonb_extract_path_text(d.properties, 'datcollversion') AS version,
      CASE COALESCE(pg_catalog.jsonb_extract_path_text(d.properties, 'datlocprovider'), 'c')
        WHEN 'c' THEN d.datcollate::${TEXT} ${EQ} ANY (ARRAY['C', 'POSIX'])
        WHEN 'b' THEN true ELSE false END AS is_c
    FROM (SELECT d.datcollate, pg_catalog.to_jsonb(d) AS properties
      FROM pg_catalog.pg_database AS d WHERE d.datname ${EQ} pg_catalog.current_database()) AS d
  )
  SELECT pg_catalog.json_build_object(
    'isReadOnly', pg_catalog.current_setting('transaction_read_only') ${EQ} 'on',
    'serverEncoding', pg_catalog.current_setting('server_encoding'),
    'clientEncoding', pg_catalog.current_setting('client_encoding'),
    'hasForeignTables', EXISTS (SELECT FROM pg_catalog.pg_foreign_table),
    'schema', (SELECT plants.nspname FROM plants),
    'currentSchema', (pg_catalog.array_remove(pg_catalog.current_schemas(false), (
      SELECT n.nspname FROM pg_catalog.pg_namespace AS n WHERE n.oid ${EQ} pg_catalog.pg_my_temp_schema()
    )))[1],
    'problems', pg_catalog.concat_ws('; ', (
      SELECT pg_catalog.string_agg(CASE
          WHEN columns.attname IS NULL THEN pg_catalog.concat('it has no column ', needed.name)
          WHEN columns.atttypmod ${NE} -1 OR NOT columns.atttypid ${EQ} ANY (needed.types)
            THEN pg_catalog.concat('its column ', needed.name, ' is ',
              pg_catalog.format_type(columns.atttypid, columns.atttypmod), ', not ', needed.type)
          WHEN columns.attgenerated ${NE} '' OR columns.attidentity ${EQ} 'a'
            THEN pg_catalog.concat('its column ', needed.name, ' is generated')
          WHEN needed.name ${EQ} 'tag' AND EXISTS (SELECT FROM required WHERE required.attname ${EQ} 'tag')
            THEN 'its column tag is NOT NULL'
          WHEN needed.name ${EQ} 'owner' AND NOT l.collisdeterministic
            THEN pg_catalog.concat('its column owner has the collation ', l.collname, ', which treats different owners as equal')
        END, '; ' ORDER BY needed.name)
      FROM (VALUES ('owner', ${TEXT_TYPES}), ('id', 'bigint', ARRAY['pg_catalog.int8'::pg_catalog.regtype]),
          ('name', ${TEXT_TYPES}), ('tag', ${TEXT_TYPES})) AS needed (name, type, types)
        LEFT JOIN columns ON columns.attname::${TEXT} ${EQ} needed.name
          AND columns.attrelid ${EQ} (SELECT plants.oid FROM plants)
        LEFT JOIN pg_catalog.pg_collation AS l ON l.oid ${EQ} columns.attcollation
      WHERE EXISTS (SELECT FROM plants)
    ), (
      SELECT pg_catalog.string_agg(DISTINCT pg_catalog.concat('its column ', required.attname, ' must have a value'), '; ')
      FROM required
      WHERE NOT required.attname::${TEXT} ${EQ} ANY (ARRAY['owner', 'id', 'name', 'tag'])
        AND NOT required.atthasdef AND required.attidentity ${EQ} ''
    ), (
      SELECT 'it is not a table' FROM plants
      WHERE NOT plants.relkind::${TEXT} ${EQ} ANY (ARRAY['r', 'p', 'v', 'f'])
    ), (
      SELECT 'it has no partitions' FROM plants
      WHERE plants.relkind ${EQ} 'p' AND NOT EXISTS (
        SELECT FROM tables JOIN pg_catalog.pg_class AS c ON c.oid ${EQ} tables.oid WHERE c.relkind ${NE} 'p'
      )
    ), (
      SELECT 'other tables inherit from it, and its unique index does not apply to their rows' FROM plants
      WHERE plants.relkind ${EQ} 'r' AND EXISTS (
        SELECT FROM pg_catalog.pg_inherits AS h WHERE h.inhparent ${EQ} plants.oid
      )
    ), (
      SELECT 'it has no unique index on (owner, id) that is not deferrable' FROM plants
      WHERE (plants.relkind ${EQ} 'r'
          OR (plants.relkind ${EQ} 'p' AND NOT EXISTS (SELECT FROM pg_catalog.pg_foreign_table)))
        AND NOT EXISTS (
          SELECT FROM indexes
          WHERE indexes.indrelid ${EQ} plants.oid AND indexes.is_on_key AND indexes.is_exact AND indexes.has_usual_operators
            AND indexes.indimmediate AND indexes.indisvalid AND indexes.indpred IS NULL
        )
    ), (
      SELECT pg_catalog.string_agg(pg_catalog.concat('its index ', indexes.relname, CASE
          WHEN NOT indexes.is_on_key THEN ' makes other columns than (owner, id) unique'
          WHEN NOT indexes.is_exact THEN ' has a collation that treats different owners as equal'
          WHEN NOT indexes.has_usual_operators THEN ' has an operator class that can treat different owners as equal'
          ELSE ' is deferrable'
        END), '; ' ORDER BY indexes.relname)
      FROM indexes
      WHERE NOT (indexes.is_on_key AND indexes.is_exact AND indexes.has_usual_operators AND indexes.indimmediate)
        AND NOT indexes.relispartition
    )),
    'outdated', (
      SELECT pg_catalog.string_agg(pg_catalog.format('%I (recorded version %s, actual version %s)', collations.collname,
        collations.collversion, pg_catalog.pg_collation_actual_version(collations.oid)), ', ')
      FROM collations
      WHERE collations.collversion
        ${NE} pg_catalog.concat(pg_catalog.pg_collation_actual_version(collations.oid))
    ),
    'databaseVersion', (
      SELECT database.version FROM database
      WHERE EXISTS (SELECT FROM collations WHERE collations.collprovider ${EQ} 'd')
    ),
    'mayCommitEarly', (
        pg_catalog.current_setting('client_min_messages') ${EQ} ANY (ARRAY['error', 'fatal', 'panic'])
        OR pg_catalog.current_setting('synchronous_standby_names', true) ${NE} ''
        OR EXISTS (
          SELECT FROM pg_catalog.pg_settings AS s
          WHERE s.name ${EQ} 'synchronous_commit' AND s.setting ${NE} s.reset_val
        )
      ) AND NOT EXISTS (
        SELECT FROM tables JOIN pg_catalog.pg_class AS c ON c.oid ${EQ} tables.oid WHERE c.relkind ${EQ} 'f'
      ),
    'isUnlogged', EXISTS (
      SELECT FROM tables JOIN pg_catalog.pg_class AS c ON c.oid ${EQ} tables.oid WHERE c.relpersistence ${EQ} 'u'
    ),
    'hasRowSecurity', EXISTS (SELECT FROM plants WHERE pg_catalog.row_security_active(plants.oid)),
    'collation', (
      SELECT CASE WHEN l.collprovider ${EQ} 'd' THEN 'of the database' ELSE pg_catalog.quote_ident(l.collname) END
      FROM columns JOIN pg_catalog.pg_collation AS l ON l.oid ${EQ} columns.attcollation
      WHERE columns.attrelid ${EQ} (SELECT plants.oid FROM plants) AND columns.attname ${EQ} 'owner'
        AND NOT CASE l.collprovider
          WHEN 'd' THEN (SELECT database.is_c FROM database)
          WHEN 'c' THEN l.collcollate::${TEXT} ${EQ} ANY (ARRAY['C', 'POSIX'])
          WHEN 'b' THEN true ELSE false END
    )
  )::${TEXT} WHERE ${IS_VOLATILE}`,
}

/** The version of the database's collation that its libraries have now. PostgreSQL 15 and later have this function. */
export const DATABASE_COLLATION_VERSION: FixedStatement = {
  text: `${ON_PRIMARY}
  SELECT pg_catalog.pg_database_collation_actual_version(d.oid)
  FROM pg_catalog.pg_database AS d WHERE d.datname ${EQ} pg_catalog.current_database() AND ${IS_VOLATILE}`,
}

/** Fails with 42P01 if there is no table. Needs no privilege on the table. */
export const TABLE_EXISTS: Statement = unprepared(
  // Escapes mean the same here whatever `standard_conforming_strings` is.
  (table) =>
    `${ON_PRIMARY} SELECT E'${qualifiedNameOf(table).replace(/['\\]/g, '$&$&')}'::pg_catalog.regclass::${TEXT} WHERE ${IS_VOLATILE}`,
)

export const CREATE_TABLE: Statement = unprepared((table) =>
  schema.replace('plant_store_plants', () => qualifiedNameOf(table)),
)

const insertInto = (table: Table): string => `INSERT INTO ${qualifiedNameOf(table)} (owner, id, name, tag)`

/**
 * Change nothing, and fail if a create, a delete or a list would. CockroachDB does not take both in one statement.
 * RETURNING needs the privilege to read these columns, and fails if a rule does nothing instead.
 */
export const CHECK_WRITABLE: readonly Statement[] = [
  unprepared((table) => `DELETE FROM ${qualifiedNameOf(table)} WHERE false RETURNING owner, id, name, tag`),
  unprepared((table) => {
    return `${insertInto(table)} SELECT '', 0, '', NULL WHERE false ON CONFLICT DO NOTHING RETURNING owner, id`
  }),
]

/** Creates and deletes nobody's plant as one text: in one transaction. Tries with one id would wait for each other. */
export function probeWrite(id: number): Statement {
  // Not much fits beside such a plant on a page of the table, so it says whether the server gets another page.
  return {
    writes: 'other',
    name: undefined,
    text: (
      table,
    ) => `${insertInto(table)} VALUES ('', ${id}, pg_catalog.repeat('x', 1900), NULL) ON CONFLICT DO NOTHING;
      DELETE FROM ${qualifiedNameOf(table)} WHERE owner ${EQ} '' AND id ${EQ} ${id}`,
  }
}

// For one plant: without unnest(), the sort and the returned row it takes less time.
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

// In the order of the key, so that statements never wait in a circle; then of arrival, so that the first create wins.
// With `array_nulls` off, an array can't contain NULL, so another array says which plants have a tag. An unnest() of
// several arrays is always the server's own.
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

// In that order, too. LIMIT makes the planner expect few keys: a plan of a small table would scan it once it has grown.
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

export const LARGE_TEXT_BYTES = 1024

const NAME_BYTES = 'pg_catalog.octet_length(plants.name)'
const TAG_BYTES = 'pg_catalog.octet_length(plants.tag)'
const PAGE_CLAUSE = `WHERE plants.owner ${EQ} $1 AND plants.id ${GE} $2 AND ${IS_VOLATILE} ORDER BY plants.id LIMIT $3`

// NULL stands for the texts of a large plant: a page of such could have any size. Lengths are known without reading.
// Ids are text, like all results, because a driver can be set to ask for binary results, which text doesn't change.
export const LIST: Statement = {
  writes: undefined,
  name: 'plant-store list',
  text: (table) => `${ON_PRIMARY} SELECT plants.id::${TEXT},
      CASE WHEN ${NAME_BYTES} ${LT} ${LARGE_TEXT_BYTES} AND COALESCE(${TAG_BYTES}, 0) ${LT} ${LARGE_TEXT_BYTES} THEN plants.name END,
      CASE WHEN ${TAG_BYTES} ${LT} ${LARGE_TEXT_BYTES} THEN plants.tag END
    FROM ${qualifiedNameOf(table)} AS plants ${PAGE_CLAUSE}`,
}

/**
 * A page that ends with the plant that brings it to $4 bytes. Counting them costs the server half as much again. The
 * last column is whether another plant follows within the $3 that were read.
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
