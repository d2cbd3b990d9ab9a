package notify

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqllock/sqllock"
)

// applicationName is the name of the connection in pg_stat_activity, unless the DSN sets another one.
const applicationName = "sqllock notify"

// parse parses a DSN of lib/pq or pgx.
func parse(dsn string) (*pgconn.Config, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("%w: listen: %w", sqllock.ErrInvalid, err)
	}
	complete(config)
	return config, nil
}

// complete names the connection, and removes what the server would refuse.
func complete(config *pgconn.Config) {
	for name := range config.RuntimeParams {
		if isForDriver(name) {
			delete(config.RuntimeParams, name)
		}
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = applicationName
	}
}

// isForDriver reports whether a parameter is for lib/pq, pgx or its pool, which remove it from the DSN. With such a
// parameter the server would refuse the connection.
func isForDriver(name string) bool {
	switch name {
	case "binary_parameters", "disable_prepared_binary_result", "fallback_application_name",
		"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity":
		return true
	}
	return strings.HasPrefix(name, "pool_")
}
