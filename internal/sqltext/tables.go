package sqltext

import "strings"

// What the catalog says of the tables, one fact in each row of [Statements.Tables]. Every user may
// read what concerns tables that this user may use. The texts of what is wrong, and of the cure, stand
// here where only one database knows them.

// tablesOfPostgres asks all parts of a partitioned table, too: each of them may be UNLOGGED or foreign. Some
// columns of the catalog are younger than PostgreSQL 11, so they are read by their names (to_jsonb).
const tablesOfPostgres = `WITH RECURSIVE named (relation, top) AS (VALUES ('LOCK', CAST(to_regclass('{table}') AS oid)), ('FENCE', to_regclass('{table}_FENCE'))),
parts (relation, top, part) AS (SELECT relation, top, top FROM named UNION ALL SELECT relation, top, inhrelid FROM parts JOIN pg_inherits ON inhparent = part),
places AS (SELECT relation, part = top AS is_top, CAST(relkind AS text) AS kind, CAST(relpersistence AS text) AS persistence,
	CASE WHEN part = top THEN '' ELSE 'has the part ' || CAST(part AS regclass) || ', which ' END AS which,
	CASE relkind WHEN 'S' THEN 'SEQUENCE ' ELSE 'TABLE ' END || CAST(part AS regclass) AS object,
	(SELECT string_agg('ALTER TABLE ' || CAST(inhrelid AS regclass) || ' NO INHERIT {table}', '; ') FROM pg_inherits WHERE inhparent = top) AS disinherit
	FROM parts JOIN pg_class ON pg_class.oid = part),
flaws AS (SELECT relation, which || CASE WHEN relation = 'LOCK' AND kind IN ('v', 'm') THEN 'is a view' WHEN kind = 'f' THEN 'is a foreign table'
		WHEN relation = 'LOCK' AND kind NOT IN ('r', 'p') THEN 'is no table' WHEN relation = 'FENCE' AND kind <> 'S' THEN 'is no sequence'
		WHEN persistence = 't' THEN 'is temporary, so that no other session sees it'
		WHEN persistence = 'u' AND kind <> 'p' THEN 'is UNLOGGED, so that a crash of the server empties it while locks are held'
		WHEN is_top AND kind = 'r' AND disinherit <> '' THEN 'has tables that inherit from it, whose rows its key does not see' END AS flaw,
	CASE WHEN relation = 'FENCE' AND (kind <> 'S' OR persistence = 't') THEN 'DROP ' || object || '; CREATE SEQUENCE {table}_FENCE'
		WHEN kind NOT IN ('r', 'p', 'S') OR persistence = 't' THEN 'name the table itself by Prefix, or by the search_path'
		WHEN persistence = 'u' AND kind <> 'p' THEN 'ALTER ' || object || ' SET LOGGED' ELSE disinherit END AS cure,
	CASE WHEN is_top AND (kind NOT IN ('r', 'p') OR persistence = 't') THEN 'other' ELSE '' END AS flags FROM places),
locks AS (SELECT pg_attribute.*, typname, typcategory, typnotnull, typdefault, CASE typtype WHEN 'd' THEN typbasetype ELSE atttypid END AS type,
	CASE typtype WHEN 'd' THEN typtypmod ELSE atttypmod END AS digits, COALESCE((SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = attrelid AND adnum = attnum), '') AS value
	FROM named JOIN pg_attribute ON attrelid = top AND attnum > 0 AND NOT attisdropped JOIN pg_type ON pg_type.oid = atttypid WHERE relation = 'LOCK'),
collations AS (SELECT attname, typname, pg_collation.oid, collname, to_jsonb(pg_collation) AS c, to_jsonb(pg_database) AS d,
	CASE WHEN collname = 'default' THEN datcollate ELSE collcollate END AS locale
	FROM locks JOIN pg_collation ON pg_collation.oid = attcollation CROSS JOIN pg_database WHERE datname = current_database() AND attname IN ('lock_key', 'region'))
SELECT relation AS relation, 'flaw' AS fact, flaw AS name, '' AS text, flags AS flags, '' AS more, cure AS cure FROM flaws WHERE flaw <> ''
UNION ALL SELECT relation, 'partitioned', '', '', '', '', '' FROM places WHERE relation = 'LOCK' AND kind = 'p' AND is_top
UNION ALL SELECT 'FENCE', 'flaw', 'belongs to ' || CAST(refobjid AS regclass) || ', and is dropped or restarted with it', '', '', '',
	CASE deptype WHEN 'a' THEN 'ALTER SEQUENCE {table}_FENCE OWNED BY NONE' ELSE 'create a sequence of its own that starts above it' END
	FROM named JOIN pg_depend ON objid = top AND classid = CAST('pg_class' AS regclass) AND refclassid = classid AND deptype IN ('a', 'i') WHERE relation = 'FENCE'
UNION ALL SELECT 'FENCE', 'flaw', 'is in the schema ' || CAST(fences.relnamespace AS regnamespace) || ', and {table} in ' || CAST(locks.relnamespace AS regnamespace)
		|| ', so that a program with another search_path draws its tokens from elsewhere', '', '', '',
	format('CREATE SEQUENCE IF NOT EXISTS %1$s.{prefix}LOCK_FENCE; SELECT setval(''%1$s.{prefix}LOCK_FENCE'', GREATEST(nextval(''%1$s.{prefix}LOCK_FENCE''), nextval(''%2$s.{prefix}LOCK_FENCE''))); '
		|| 'then sqllock migrate up --prefix %1$s.{prefix}, and that Prefix in all programs, while no program uses the table', CAST(locks.relnamespace AS regnamespace), CAST(fences.relnamespace AS regnamespace))
	FROM pg_class AS locks JOIN pg_class AS fences ON locks.relnamespace <> fences.relnamespace AND locks.relpersistence <> 't' AND fences.relpersistence <> 't'
	WHERE locks.oid = to_regclass('{table}') AND fences.oid = to_regclass('{table}_FENCE')
UNION ALL SELECT 'FENCE', 'sequence', CAST(seqincrement AS text), CASE seqcache WHEN 1 THEN '0' ELSE CAST(seqcache AS text) END, CAST(CAST(seqcycle AS integer) AS text), CAST(seqmin AS text), CAST(seqmax AS text)
	FROM named JOIN pg_sequence ON seqrelid = top
UNION ALL SELECT 'LOCK', 'column', upper(attname), format_type(type, digits),
	concat_ws(' ', CASE WHEN NOT typnotnull AND (NOT attnotnull OR EXISTS (SELECT FROM pg_constraint WHERE conrelid = attrelid AND contype = 'n' AND conkey[1] = attnum AND NOT convalidated)) THEN 'null' END, CASE WHEN attidentity <> '' OR value ~* '(nextval|uuid)' THEN 'own' END,
		CASE WHEN value <> '' OR typdefault <> '' THEN 'default' END,
		CASE WHEN attname IN ('created_date', 'expired_after') AND type <> CAST('timestamp' AS regtype) THEN 'inexact' END,
		CASE WHEN attname IN ('lock_key', 'region', 'client_id') AND typcategory <> 'S' THEN 'alters' END,
		CASE WHEN attname IN ('lock_key', 'client_id') AND type IN (CAST('bpchar' AS regtype), CAST('varchar' AS regtype)) AND digits BETWEEN 4 AND 39 THEN 'narrow' END),
	CASE WHEN digits BETWEEN 0 AND 6 THEN CAST(digits AS text) ELSE '' END,
	'ALTER TABLE {table} ALTER ' || upper(attname) || CASE WHEN attname IN ('lock_key', 'client_id') THEN ' TYPE CHAR(36)' WHEN attname = 'region' THEN ' TYPE VARCHAR(100)'
		ELSE ' TYPE TIMESTAMP(6)' || CASE WHEN type = CAST('timestamptz' AS regtype) THEN ' USING ' || attname || ' AT TIME ZONE ''UTC''' ELSE '' END || ', ALTER ' || upper(attname) || ' SET NOT NULL' END
	FROM locks
UNION ALL SELECT 'LOCK', 'collation', upper(attname), CASE WHEN typname = 'citext' THEN 'citext' WHEN collname = 'default' THEN locale ELSE collname END,
	concat_ws(' ', CASE WHEN typname = 'citext' OR c ->> 'collisdeterministic' = 'false' THEN 'merges' END,
		CASE WHEN COALESCE(locale, '') ~* '^(C|POSIX|C[.].*)$' AND COALESCE(CASE WHEN collname = 'default' THEN d ->> 'datlocprovider' ELSE c ->> 'collprovider' END, 'c') <> 'i'
			OR COALESCE(CASE WHEN collname = 'default' THEN d ->> 'datlocprovider' ELSE c ->> 'collprovider' END, 'c') = 'b' THEN 'fixed' END),
	CASE WHEN pg_collation_actual_version(oid) <> CASE WHEN collname = 'default' THEN d ->> 'datcollversion' ELSE c ->> 'collversion' END
		THEN CASE WHEN collname = 'default' THEN d ->> 'datcollversion' ELSE c ->> 'collversion' END || ' to ' || pg_collation_actual_version(oid) ELSE '' END,
	'REINDEX TABLE {table}; ALTER ' || CASE WHEN collname = 'default' THEN 'DATABASE ' || quote_ident(current_database()) || ' REFRESH COLLATION VERSION' ELSE 'COLLATION ' || CAST(oid AS regcollation) || ' REFRESH VERSION' END
	FROM collations
UNION ALL SELECT 'LOCK', 'key', CAST(CAST(indexrelid AS regclass) AS text), COALESCE(upper(attname) || CASE WHEN to_jsonb(pg_index) ->> 'indnullsnotdistinct' = 'true' AND NOT attnotnull THEN ' NULLS NOT DISTINCT' ELSE '' END, '(an expression)'),
	CASE WHEN NOT indisvalid OR NOT indisready THEN 'is invalid' WHEN indpred IS NOT NULL THEN 'is partial' WHEN NOT indimmediate THEN 'is deferrable' WHEN indisexclusion THEN 'is an exclusion' ELSE '' END, CAST(place AS text),
	COALESCE((SELECT 'ALTER TABLE {table} DROP CONSTRAINT ' || quote_ident(conname) FROM pg_constraint WHERE conindid = indexrelid AND conrelid = top AND contype IN ('p', 'u', 'x')), 'DROP INDEX ' || CAST(indexrelid AS regclass))
	FROM named JOIN pg_index ON indrelid = top AND (indisunique OR indisexclusion) CROSS JOIN LATERAL unnest(CAST(indkey AS smallint[])) WITH ORDINALITY AS k (attribute, place)
	LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = attribute AND attribute <> 0 WHERE relation = 'LOCK' AND place <= indnkeyatts`

// tablesOfMySQL asks for one table by its name at a time: then the server opens no other. What has a name of its
// own in a column of one server alone stands in a comment that the other does not read. No expression needs an
// empty text, which a session of MariaDB may read as NULL.
var tablesOfMySQL = strings.NewReplacer("{of lock}", ofTable("LOCK"), "{of fence}", ofTable("LOCK_FENCE"), "{of names}", ofTable("LOCK_NAME")).Replace(
	`SELECT 'LOCK' AS relation, 'exists' AS fact, CAST(TABLE_TYPE AS CHAR) AS name, COALESCE(CAST(ENGINE AS CHAR), '') AS text, '' AS flags, '' AS more, '' AS cure FROM information_schema.TABLES {of lock}
UNION ALL SELECT 'FENCE', 'exists', CAST(TABLE_TYPE AS CHAR), COALESCE(CAST(ENGINE AS CHAR), ''), '', '', '' FROM information_schema.TABLES {of fence}
UNION ALL SELECT 'NAME', 'exists', CAST(TABLE_TYPE AS CHAR), COALESCE(CAST(ENGINE AS CHAR), ''), '', '', '' FROM information_schema.TABLES {of names}
UNION ALL SELECT 'LOCK', 'column', CAST(UPPER(COLUMN_NAME) AS CHAR), CAST(COLUMN_TYPE AS CHAR),
	CONCAT_WS(' ', IF(IS_NULLABLE = 'YES', 'null', NULL), IF(EXTRA LIKE '%auto_increment%' OR COALESCE(COLUMN_DEFAULT, '') LIKE '%uuid%' OR COALESCE(COLUMN_DEFAULT, '') LIKE '%nextval%', 'own', NULL),
		IF(COALESCE(COLUMN_DEFAULT, 'NULL') <> 'NULL' OR EXTRA LIKE '%GENERATED%', 'default', NULL), IF(@@SESSION.sql_mode LIKE '%STRICT%', NULL, 'implicit'),
		IF(UPPER(COLUMN_NAME) IN ('CREATED_DATE', 'EXPIRED_AFTER') AND DATA_TYPE <> 'datetime', 'inexact', NULL),
		IF(UPPER(COLUMN_NAME) IN ('LOCK_KEY', 'REGION', 'CLIENT_ID') AND (CHARACTER_MAXIMUM_LENGTH IS NULL OR DATA_TYPE = 'binary'), IF(UPPER(COLUMN_NAME) = 'LOCK_KEY' AND DATA_TYPE IN ('binary', 'uuid'), 'uuids', 'alters'), NULL),
		IF(CHARACTER_MAXIMUM_LENGTH < IF(UPPER(COLUMN_NAME) = 'REGION', 100, 36), 'narrow', NULL)),
	COALESCE(CAST(DATETIME_PRECISION AS CHAR), ''),
	CONCAT('ALTER TABLE {table} MODIFY ', CAST(UPPER(COLUMN_NAME) AS CHAR), 
		CASE UPPER(COLUMN_NAME) WHEN 'CLIENT_ID' THEN ' CHAR(36)' WHEN 'LOCK_KEY' THEN ' CHAR(36) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL' WHEN 'REGION' THEN ' VARCHAR(100) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL' ELSE ' DATETIME(6) NOT NULL' END)
	FROM information_schema.COLUMNS {of lock}
UNION ALL SELECT 'FENCE', 'column', CAST(UPPER(COLUMN_NAME) AS CHAR), CAST(DATA_TYPE AS CHAR), IF(EXTRA LIKE '%auto_increment%', 'own', ''), '', '' FROM information_schema.COLUMNS {of fence}
UNION ALL SELECT 'LOCK', 'collation', CAST(UPPER(COLUMN_NAME) AS CHAR), CAST(COLLATION_NAME AS CHAR), CONCAT_WS(' ', IF(RIGHT(COLLATION_NAME, 4) = '_bin' OR COLLATION_NAME = 'binary', 'fixed', 'merges'), IF(CHARACTER_SET_NAME IN ('utf8mb4', 'binary'), NULL, 'lacks')),
	CAST(CHARACTER_SET_NAME AS CHAR), ''
	FROM information_schema.COLUMNS {of lock} AND COLUMN_NAME IN ('LOCK_KEY', 'REGION') AND COLLATION_NAME IS NOT NULL
UNION ALL SELECT 'LOCK', 'key', CAST(INDEX_NAME AS CHAR), IF(SUB_PART IS NULL, COALESCE(CAST(UPPER(COLUMN_NAME) AS CHAR), '(an expression)'), CONCAT(CAST(UPPER(COLUMN_NAME) AS CHAR), '(', CAST(SUB_PART AS CHAR), ')')),
	/*M! IF(IGNORED = 'YES', 'is ignored', *//*!80000 IF(IS_VISIBLE = 'NO', 'is invisible', */ '' /*M! ) *//*!80000 ) */, CAST(SEQ_IN_INDEX AS CHAR),
	IF(INDEX_NAME = 'PRIMARY', 'ALTER TABLE {table} DROP PRIMARY KEY', CONCAT('ALTER TABLE {table} DROP INDEX ', CAST(INDEX_NAME AS CHAR)))
	FROM information_schema.STATISTICS {of lock} AND NON_UNIQUE = 0
UNION ALL SELECT 'SCHEMA', 'exists', '', '', '', '', '' FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ` + inSchema + `
LIMIT 1000`) // also where sql_select_limit is less

const inSchema = "COALESCE(NULLIF('{schema}', ''), DATABASE())"

func ofTable(suffix string) string {
	return "WHERE TABLE_SCHEMA = " + inSchema + " AND TABLE_NAME = '{prefix}" + suffix + "'"
}

// tablesOfSQLite has no types of instants: SQLite keeps them as text, whatever they are declared as. It keeps no text that looks
// like a number in a column whose type has neither TEXT, CHAR, CLOB nor BLOB, or has INT: 01 and 1e0 become 1.
const tablesOfSQLite = `SELECT 'LOCK' AS relation, 'flaw' AS fact, 'is ' || CASE WHEN schema = 'temp' THEN 'temporary, so that no other connection sees it' ELSE 'a ' || type END AS name,
	'' AS text, 'other' AS flags, '' AS more, 'name the table itself by Prefix' AS cure
	FROM (SELECT schema, type FROM pragma_table_list('{prefix}LOCK') WHERE '{schema}' IN ('', schema) ORDER BY schema <> 'temp' LIMIT 1) WHERE schema = 'temp' OR type IN ('view', 'virtual')
UNION ALL SELECT 'LOCK', 'column', upper(name), type,
	CASE WHEN "notnull" OR pk AND type = 'INTEGER' THEN '' ELSE 'null ' END || CASE WHEN pk AND type = 'INTEGER' THEN 'own ' ELSE '' END || CASE WHEN dflt_value IS NOT NULL OR hidden > 1 THEN 'default ' ELSE '' END
	|| CASE WHEN upper(name) IN ('LOCK_KEY', 'REGION', 'CLIENT_ID') AND type <> '' AND (instr(upper(type), 'INT') OR NOT (instr(upper(type), 'CHAR') OR instr(upper(type), 'CLOB') OR instr(upper(type), 'TEXT') OR instr(upper(type), 'BLOB')))
		AND NOT (upper(type) = 'ANY' AND strict) THEN CASE WHEN upper(name) = 'LOCK_KEY' AND NOT strict THEN 'uuids' ELSE 'alters' END ELSE '' END, '', ''
	FROM pragma_table_xinfo('{prefix}LOCK', NULLIF('{schema}', '')),
		(SELECT strict FROM pragma_table_list('{prefix}LOCK') WHERE '{schema}' IN ('', schema) ORDER BY schema <> 'temp' LIMIT 1)
UNION ALL SELECT 'LOCK', 'key', indexes.name, COALESCE(upper(columns.name), '(an expression)'), CASE WHEN partial THEN 'is partial' ELSE '' END, CAST(seqno + 1 AS TEXT),
	CASE origin WHEN 'c' THEN 'DROP INDEX {in schema}' || indexes.name ELSE '' END
	FROM pragma_index_list('{prefix}LOCK', NULLIF('{schema}', '')) AS indexes, pragma_index_xinfo(indexes.name, NULLIF('{schema}', '')) AS columns WHERE "unique" AND "key"
UNION ALL SELECT DISTINCT 'LOCK', 'collation', upper(columns.name), coll, CASE coll WHEN 'BINARY' THEN 'fixed' ELSE 'merges' END, '', ''
	FROM pragma_index_list('{prefix}LOCK', NULLIF('{schema}', '')) AS indexes, pragma_index_xinfo(indexes.name, NULLIF('{schema}', '')) AS columns
	WHERE "unique" AND "key" AND upper(columns.name) IN ('LOCK_KEY', 'REGION')
UNION ALL SELECT 'FENCE', 'flaw', 'has no AUTOINCREMENT, so that a fencing token may be given out again', '', '', '',
	'CREATE TABLE {table}_FENCE_NEW (ID INTEGER PRIMARY KEY AUTOINCREMENT); INSERT INTO {table}_FENCE_NEW SELECT MAX(ID) FROM {table}_FENCE; DROP TABLE {table}_FENCE; ALTER TABLE {table}_FENCE_NEW RENAME TO {prefix}LOCK_FENCE'
	FROM {in schema}sqlite_master WHERE name = '{prefix}LOCK_FENCE' COLLATE NOCASE AND type = 'table' AND sql NOT LIKE '%AUTOINCREMENT%'
UNION ALL SELECT 'FENCE', 'flaw', 'is in the schema ' || fences || ', and {table} in ' || locks || ', so that a crash may keep the one and lose the other', '', '', '',
	'CREATE TABLE IF NOT EXISTS ' || locks || '.{prefix}LOCK_FENCE (ID INTEGER PRIMARY KEY AUTOINCREMENT); INSERT OR IGNORE INTO ' || locks || '.{prefix}LOCK_FENCE SELECT MAX(ID) FROM ' || fences
		|| '.{prefix}LOCK_FENCE; then migrations.Up with the Prefix ' || locks || '.{prefix}, and that Prefix in all programs'
	FROM (SELECT (SELECT schema FROM pragma_table_list('{prefix}LOCK') WHERE '{schema}' IN ('', schema) ORDER BY schema <> 'temp', schema <> 'main' LIMIT 1) AS locks,
		(SELECT schema FROM pragma_table_list('{prefix}LOCK_FENCE') WHERE '{schema}' IN ('', schema) ORDER BY schema <> 'temp', schema <> 'main' LIMIT 1) AS fences) WHERE fences <> locks AND locks <> 'temp'`
