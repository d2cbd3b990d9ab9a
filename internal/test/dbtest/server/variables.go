package server

import "slices"

// The environment variables with the DSNs of servers: postgres:// URLs for PostgreSQL and DSNs
// of go-sql-driver/mysql for MySQL.
const (
	// PostgresVariable is for a PostgreSQL server. The user must be able to create schemas,
	// and databases for the tests of [PgBouncerVariable].
	PostgresVariable = "SQLLOCK_TEST_POSTGRES"
	// PgBouncerVariable is for a PgBouncer in front of the server of PostgresVariable. It
	// must pool transactions and serve each database of that server. [StartPgBouncer]
	// describes what its URL and its settings must contain.
	PgBouncerVariable = "SQLLOCK_TEST_PGBOUNCER"
	// MySQLVariable is for a MySQL or MariaDB server. The user must be able to create
	// databases.
	MySQLVariable = "SQLLOCK_TEST_MYSQL"
	// PostgresNewestVariable is like PostgresVariable, for the newest major version.
	PostgresNewestVariable = "SQLLOCK_TEST_POSTGRES_NEWEST"
	// OracleMySQLVariable is like MySQLVariable, for Oracle's MySQL.
	OracleMySQLVariable = "SQLLOCK_TEST_ORACLE_MYSQL"
)

// ScratchVariable is the directory for the data of servers and SQLite.
const ScratchVariable = "SQLLOCK_SCRATCH"

// The names of the kinds of databases, in SQLLOCK_REQUIRE and SQLLOCK_SERVERS.
const (
	SQLite         = "sqlite"
	Postgres       = "postgres"
	PgBouncer      = "pgbouncer"
	MySQL          = "mysql" // if it is started here: MariaDB
	PostgresNewest = "postgres-newest"
	OracleMySQL    = "oracle-mysql"
	Spring         = "spring"
)

// A Kind is a kind of database, or of interoperation partner, that tests use.
type Kind struct {
	// Name is one of the constants above.
	Name string
	// Title is its name in messages.
	Title string
	// Variable is the environment variable with the DSN. It is empty if there is no
	// server.
	Variable string
}

// Kinds are all kinds, in the order of messages.
var Kinds = []Kind{
	{SQLite, "SQLite", ""},
	{Postgres, "PostgreSQL", PostgresVariable},
	{PgBouncer, "PgBouncer", PgBouncerVariable},
	{PostgresNewest, "PostgreSQL's newest major version", PostgresNewestVariable},
	{MySQL, "MariaDB", MySQLVariable},
	{OracleMySQL, "Oracle's MySQL", OracleMySQLVariable},
	{Spring, "Spring Integration", ""},
}

// KindOf returns the kind with the name, which must be one of the constants.
func KindOf(name string) Kind {
	return Kinds[slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })]
}
