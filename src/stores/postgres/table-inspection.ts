import { EQ, NE, ON_PRIMARY, IS_VOLATILE, TEXT } from './sql-fragments.ts'

type Sql = string

/** The result of {@link INSPECT_TABLE}. */
export interface TableInspection {
  readonly isReadOnly: boolean
  readonly serverEncoding: string
  readonly clientEncoding: string
  /** Whether the database has foreign tables, in which case statements may affect other servers. */
  readonly hasForeignTables: boolean
  /** The schema of the table; null if the table doesn't exist. */
  readonly schema: string | null
  /** The schema in which the session would create a table; null if the search_path contains no usable schema. */
  readonly currentSchema: string | null
  /** Why the store can't use the table; empty if it can. */
  readonly problems: string
  /**
   * The collations of the owner column whose recorded version differs from the actual version; null if there are none.
   */
  readonly outdated: string | null
  /**
   * The recorded version of the database's collation, or `none`; null if the owner column has another collation, or if
   * the server doesn't record versions (before PostgreSQL 15).
   */
  readonly databaseVersion: string | null
  /**
   * Whether commits of this session might not wait for the disk or the synchronous standby, or might not report when
   * they didn't wait. Either the session is configured that way, or the server has synchronous standbys and another
   * client of a connection pooler could configure the session that way. False if the plants are in foreign tables,
   * because those servers don't report how they commit.
   */
  readonly mayCommitEarly: boolean
  /** Whether the table, or a partition, is unlogged. */
  readonly isUnlogged: boolean
  /** Whether row-level security applies to the session's role. */
  readonly hasRowSecurity: boolean
  /** The collation of the owner column; null if it is C. */
  readonly collation: string | null
}

const TEXT_TYPES = `'text', ARRAY['${TEXT}'::pg_catalog.regtype, 'pg_catalog.varchar'::pg_catalog.regtype]`
const OWNER_AND_ID = `ANY (ARRAY['owner', 'id'])`

/**
 * Inspects the server and the table. The table is in the schema `$1`, or where the search_path finds it if `$1` is
 * null. Returns one row with one column: a {@link TableInspection} as JSON. The common table expressions:
 *
 * - `plants`: the table, chosen from the `candidates` with that name; no row if it doesn't exist
 * - `tables`, `columns`: the table and its partitions, and their columns
 * - `domains`: the domain types of the columns
 * - `required`: the columns that can't be NULL because of a constraint on the column, its domain or the table
 * - `indexes`: unique and exclusion indexes. The operator classes of bpchar count as unusual, because they ignore
 *   trailing spaces in an owner. Views, and partitions on other servers, don't expose their indexes.
 * - `collations`, `database`: the collations of the owner column, and the collation of the database. musl (Alpine) has
 *   no collation versions, so if a version exists but wasn't recorded, the files were moved from another system.
 *
 * There's no ORDER BY, because docs/scaling.md turns off sorting (`enable_sort`). With ORDER BY, the planner would then
 * overestimate the cost of the query so much that the server would spend seconds on JIT compilation.
 */
export const INSPECT_TABLE: Sql = `${ON_PRIMARY}
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
      SELECT pg_catalog.string_agg(DISTINCT pg_catalog.concat('its column ', required.attname, ' is required and has no default'), '; ')
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
      SELECT 'it has no unique index on (owner, id) that is valid, not partial and not deferrable' FROM plants
      WHERE (plants.relkind ${EQ} 'r'
          OR (plants.relkind ${EQ} 'p' AND NOT EXISTS (SELECT FROM pg_catalog.pg_foreign_table)))
        AND NOT EXISTS (
          SELECT FROM indexes
          WHERE indexes.indrelid ${EQ} plants.oid AND indexes.is_on_key AND indexes.is_exact AND indexes.has_usual_operators
            AND indexes.indimmediate AND indexes.indisvalid AND indexes.indpred IS NULL
        )
    ), (
      SELECT pg_catalog.string_agg(pg_catalog.concat('its index ', indexes.relname, CASE
          WHEN NOT indexes.is_on_key THEN ' is unique on columns other than (owner, id)'
          WHEN NOT indexes.is_exact THEN ' has a collation that treats different owners as equal'
          WHEN NOT indexes.has_usual_operators THEN ' has an operator class that can treat different owners as equal'
          ELSE ' is deferrable'
        END), '; ' ORDER BY indexes.relname)
      FROM indexes
      WHERE NOT (indexes.is_on_key AND indexes.is_exact AND indexes.has_usual_operators AND indexes.indimmediate)
        AND NOT indexes.relispartition
    )),
    'outdated', (
      SELECT pg_catalog.string_agg(pg_catalog.format('%I (recorded version %s, actual version %s)', versions.name,
        versions.recorded, versions.actual), ', ')
      FROM (SELECT collations.collname AS name, COALESCE(collations.collversion, 'none') AS recorded,
        COALESCE(pg_catalog.pg_collation_actual_version(collations.oid), 'none') AS actual
        FROM collations WHERE collations.collprovider ${NE} 'd') AS versions
      WHERE versions.recorded ${NE} versions.actual
    ),
    'databaseVersion', (
      SELECT COALESCE(database.version, 'none') FROM database
      WHERE EXISTS (SELECT FROM collations WHERE collations.collprovider ${EQ} 'd')
        AND pg_catalog.to_regproc('pg_catalog.pg_database_collation_actual_version') IS NOT NULL
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
  )::${TEXT} WHERE ${IS_VOLATILE}`

/**
 * Returns the actual version of the database's collation, or `none`. Requires PostgreSQL 15 or later, which introduced
 * the function.
 */
export const DATABASE_COLLATION_VERSION: Sql = `${ON_PRIMARY}
  SELECT COALESCE(pg_catalog.pg_database_collation_actual_version(d.oid), 'none')
  FROM pg_catalog.pg_database AS d WHERE d.datname ${EQ} pg_catalog.current_database() AND ${IS_VOLATILE}`
