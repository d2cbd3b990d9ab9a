package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

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
	// PgBouncerNewestVariable is like PgBouncerVariable, for the newest PgBouncer.
	PgBouncerNewestVariable = "SQLLOCK_TEST_PGBOUNCER_NEWEST"
	// PgpoolVariable is for a Pgpool-II that balances reads between a PostgreSQL and a standby that
	// shows what is committed (synchronous_commit=remote_apply). The user must be able to create
	// schemas and roles.
	PgpoolVariable = "SQLLOCK_TEST_PGPOOL"
	// MySQLVariable is for a MySQL or MariaDB server. The user must be able to create
	// databases.
	MySQLVariable = "SQLLOCK_TEST_MYSQL"
	// PostgresNewestVariable is like PostgresVariable, for the newest major version.
	PostgresNewestVariable = "SQLLOCK_TEST_POSTGRES_NEWEST"
	// PostgresBetaVariable is like PostgresVariable, for a beta of the next major version.
	PostgresBetaVariable = "SQLLOCK_TEST_POSTGRES_BETA"
	// MariaDBNewestVariable is like MySQLVariable, for MariaDB's newest long-term series.
	MariaDBNewestVariable = "SQLLOCK_TEST_MARIADB_NEWEST"
	// OracleMySQLVariable is like MySQLVariable, for Oracle's MySQL.
	OracleMySQLVariable = "SQLLOCK_TEST_ORACLE_MYSQL"
	// TiDBVariable is like MySQLVariable, for TiDB.
	TiDBVariable = "SQLLOCK_TEST_TIDB"
)

// ScratchVariable is the directory for the data of servers and SQLite.
const ScratchVariable = "SQLLOCK_SCRATCH"

// The names of the kinds of databases, in SQLLOCK_REQUIRE and SQLLOCK_SERVERS.
const (
	SQLite          = "sqlite"
	Postgres        = "postgres"
	PgBouncer       = "pgbouncer"
	PgBouncerNewest = "pgbouncer-newest"
	Pgpool          = "pgpool"
	MySQL           = "mysql" // if it is started here: MariaDB
	PostgresNewest  = "postgres-newest"
	PostgresBeta    = "postgres-beta"
	MariaDBNewest   = "mariadb-newest"
	OracleMySQL     = "oracle-mysql"
	TiDB            = "tidb"
	Spring          = "spring"
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
	// Start starts such a server with its data in dir; nil if there is none. behind is the DSN of
	// the server of the kind Behind, if there is such a kind.
	Start  func(ctx context.Context, dir, behind string) (*Server, error)
	Behind string
}

// Kinds are all kinds, in the order of messages.
var Kinds = []Kind{
	{Name: SQLite, Title: "SQLite"},
	{Name: Postgres, Title: "PostgreSQL", Variable: PostgresVariable, Start: alone(StartPostgres)},
	{Name: PgBouncer, Title: "PgBouncer", Variable: PgBouncerVariable, Start: StartPgBouncer, Behind: Postgres},
	{Name: PgBouncerNewest, Title: "PgBouncer's newest version", Variable: PgBouncerNewestVariable, Start: StartPgBouncerNewest, Behind: Postgres},
	{Name: Pgpool, Title: "Pgpool-II", Variable: PgpoolVariable, Start: alone(startPgpool)},
	{Name: PostgresNewest, Title: "PostgreSQL's newest major version", Variable: PostgresNewestVariable, Start: alone(StartPostgresNewest)},
	{Name: PostgresBeta, Title: "PostgreSQL's next major version", Variable: PostgresBetaVariable, Start: alone(StartPostgresBeta)},
	{Name: MySQL, Title: "MariaDB", Variable: MySQLVariable, Start: alone(StartMariaDB)},
	{Name: MariaDBNewest, Title: "MariaDB's newest long-term series", Variable: MariaDBNewestVariable, Start: alone(StartMariaDBNewest)},
	{Name: OracleMySQL, Title: "Oracle's MySQL", Variable: OracleMySQLVariable, Start: alone(StartOracleMySQL)},
	{Name: TiDB, Title: "TiDB", Variable: TiDBVariable, Start: alone(StartTiDB)},
	{Name: Spring, Title: "Spring Integration"},
}

func alone(start func(ctx context.Context, dir string) (*Server, error)) func(ctx context.Context, dir, _ string) (*Server, error) {
	return func(ctx context.Context, dir, _ string) (*Server, error) { return start(ctx, dir) }
}

// KindOf returns the kind with the name, which must be one of the constants.
func KindOf(name string) Kind {
	return Kinds[slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == name })]
}

// The environment variables of a run. The first two hold comma-separated names of [Kinds].
const (
	// RequireVariable lists the servers that must be available.
	RequireVariable = "SQLLOCK_REQUIRE"
	// AllVariable asks for the full run: the whole matrix of servers, drivers and settings, and the slow tests
	// of the tests' own helpers.
	AllVariable = "SQLLOCK_TEST_ALL"
	// ServersVariable lists the servers that are started, for a quick local run.
	ServersVariable = "SQLLOCK_SERVERS"
	// ReportVariable holds the path of the file to which tests write what they have run where.
	ReportVariable = "SQLLOCK_TEST_REPORT"
)

// Clusters are the names of clusters, which SQLLOCK_REQUIRE may contain too. The module
// reliability starts them.
var Clusters = []string{"galera", "group-replication", "patroni", "vitess", "tidb-cluster"}

// ErrUnknownKind is wrapped by the error for a name that is not in [Kinds]: a misspelt name
// would require nothing.
var ErrUnknownKind = errors.New("no such server")

// Required reports whether tests fail, and are not skipped, if the named server is missing. That
// is so if SQLLOCK_REQUIRE contains the name. If SQLLOCK_REQUIRE is empty, CI=true requires
// the servers of Debian's packages, and a full run also those that are fetched: without them it would leave out
// cells, and end well. TiDB may be missing, since it has to be compiled, and PostgreSQL's beta, since there is none for
// a part of the year.
func Required(name string) (bool, error) {
	names, err := listed(RequireVariable)
	if len(names) == 0 && os.Getenv("CI") == "true" {
		names = []string{SQLite, Postgres, PgBouncer, Pgpool, MySQL}
		if os.Getenv(AllVariable) != "" {
			names = append(names, PgBouncerNewest, PostgresNewest, MariaDBNewest, OracleMySQL)
		}
	}
	return slices.Contains(names, name), err
}

// Wanted reports whether the named server must be started. By default that is each server, some only with
// SQLLOCK_TEST_ALL: the build of TiDB takes minutes, and a PostgreSQL or PgBouncer of another version shows a fault
// rarely. With SQLLOCK_SERVERS it is those that it names, and those that they need.
func Wanted(name string) (bool, error) {
	names, err := listed(ServersVariable)
	if len(names) == 0 {
		rare := []string{TiDB, PostgresBeta, PgBouncerNewest}
		return os.Getenv(AllVariable) != "" || !slices.Contains(rare, name), err
	}
	return slices.ContainsFunc(names, func(n string) bool {
		return n == name || !slices.Contains(Clusters, n) && KindOf(n).Behind == name
	}), err
}

func listed(variable string) (names []string, err error) {
	for name := range strings.SplitSeq(os.Getenv(variable), ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if !slices.Contains(Clusters, name) && !slices.ContainsFunc(Kinds, func(k Kind) bool { return k.Name == name }) {
			return nil, fmt.Errorf("%s: %w: %q; there are: %s", variable, ErrUnknownKind, name, allNames())
		}
		names = append(names, name)
	}
	return names, nil
}

func allNames() string {
	var names []string
	for _, kind := range Kinds {
		names = append(names, kind.Name)
	}
	return strings.Join(names, ", ")
}
