package server

import "slices"

// The environment variables that lead tests to their servers. Those of
// PostgreSQL hold postgres:// URLs, those of MySQL go-sql-driver/mysql DSNs.
const (
	// PostgresVariable leads to a PostgreSQL server on which the user may create
	// schemas, and databases for the tests of [PgBouncerVariable].
	PostgresVariable = "SQLLOCK_TEST_POSTGRES"
	// PgBouncerVariable leads to a PgBouncer in transaction pooling in front of
	// the server of PostgresVariable. It serves every database there. What its
	// URL and its settings must contain is what [StartPgBouncer] says.
	PgBouncerVariable = "SQLLOCK_TEST_PGBOUNCER"
	// MySQLVariable leads to a MySQL or MariaDB server on which the user may
	// create databases.
	MySQLVariable = "SQLLOCK_TEST_MYSQL"
	// PostgresNewestVariable leads to a server like that of PostgresVariable, of
	// the newest major version.
	PostgresNewestVariable = "SQLLOCK_TEST_POSTGRES_NEWEST"
	// OracleMySQLVariable leads to a server like that of MySQLVariable, which is
	// Oracle's MySQL.
	OracleMySQLVariable = "SQLLOCK_TEST_ORACLE_MYSQL"
)

// ScratchVariable names the directory in which servers and SQLite keep the data of
// tests.
const ScratchVariable = "SQLLOCK_SCRATCH"

// The names of the kinds of databases, in SQLLOCK_REQUIRE and SQLLOCK_SERVERS.
const (
	SQLite         = "sqlite"
	Postgres       = "postgres"
	PgBouncer      = "pgbouncer"
	MySQL          = "mysql" // a MariaDB, when it is started here
	PostgresNewest = "postgres-newest"
	OracleMySQL    = "oracle-mysql"
	Spring         = "spring"
)

// A Kind is a kind of database, or of partner, that tests want.
type Kind struct {
	// Name is one of the constants above.
	Name string
	// Title is what people call it.
	Title string
	// Variable holds the DSN of such a server. It is empty for what needs no
	// server.
	Variable string
}

// Kinds are all kinds, in the order in which they are told of.
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
