// Package durable starts the servers of a benchmark: the servers of sqllock's tests, but with the
// settings of a production server. Commits are as durable as the server makes them by default.
// The servers of package dbtest do not wait for the disk, so they cannot be used for
// comparisons.
package durable

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// The databases of a benchmark. The DSN of an embedded database is a directory.
const (
	Postgres       = "postgres"
	PostgresNewest = "postgres-newest"
	MariaDB        = "mariadb"
	OracleMySQL    = "oracle-mysql"
	Redis          = "redis"
	RedisAlways    = "redis-always" // waits for the disk, as the SQL servers do
	SQLite         = "sqlite"
	Files          = "files" // a directory
	Etcd           = "etcd"  // one member; its DSN is the URL of its clients
)

// A Server is a running server.
type Server struct {
	*server.Server

	Kind string // one of the databases
	// Settings are the differences from the server's defaults.
	Settings []string
}

// DSN returns the DSN of the server, or of a proxy in front of it at another address.
func (s *Server) DSN(address string) string {
	return strings.Replace(s.Server.DSN(), s.Address(), address, 1)
}

// recipes find the programs, and install what is missing.
var recipes = map[string]func(ctx context.Context, dir string) (recipe, error){
	Postgres:       postgres,
	PostgresNewest: postgresNewest,
	MariaDB:        mariadb,
	OracleMySQL:    oracleMySQL,
	Redis:          redis(),
	RedisAlways:    redis("--appendonly", "yes", "--appendfsync", "always"),
	Etcd:           etcd,
}

// Start starts a kind of server with its data in dir. It installs missing programs.
func Start(ctx context.Context, kind, dir string) (*Server, error) {
	r, err := recipes[kind](ctx, dir)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	r.Name = kind
	started, err := server.Start(ctx, r.Recipe, dir)
	if err != nil {
		return nil, err
	}
	return &Server{Server: started, Kind: cmp.Or(r.database, kind), Settings: r.settings}, nil
}
