package server

// The environment variables that lead tests to their servers.
const (
	// PostgresVariable holds a postgres:// URL of a PostgreSQL server on which
	// the user may create schemas.
	PostgresVariable = "SQLLOCK_TEST_POSTGRES"
	// MySQLVariable holds the go-sql-driver/mysql DSN of a MySQL or MariaDB
	// server on which the user may create databases.
	MySQLVariable = "SQLLOCK_TEST_MYSQL"
)
