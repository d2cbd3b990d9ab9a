package main

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// A starter starts the named kind of server with its data in dir. dsns are the DSNs of the
// servers of earlier stages.
type starter struct {
	name  string
	start func(ctx context.Context, dir string, dsns map[string]string) (*server.Server, error)
}

// stages are the servers in the order of their start. The servers of a stage start
// concurrently.
var stages = [][]starter{
	{
		{server.Postgres, alone(server.StartPostgres)},
		{server.PostgresNewest, alone(server.StartPostgresNewest)},
		{server.MySQL, alone(server.StartMariaDB)},
		{server.OracleMySQL, alone(server.StartOracleMySQL)},
	},
	{
		{server.PgBouncer, startBouncer},
	},
}

func alone(start func(context.Context, string) (*server.Server, error)) func(context.Context, string, map[string]string) (*server.Server, error) {
	return func(ctx context.Context, dir string, _ map[string]string) (*server.Server, error) {
		return start(ctx, dir)
	}
}

func startBouncer(ctx context.Context, dir string, dsns map[string]string) (*server.Server, error) {
	behind, ok := dsns[server.Postgres]
	if !ok {
		return nil, fmt.Errorf("start PgBouncer: it needs PostgreSQL, which is missing: %w", server.ErrMissing)
	}
	return server.StartPgBouncer(ctx, dir, behind)
}
