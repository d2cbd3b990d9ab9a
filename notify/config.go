package notify

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sqllock/sqllock"
)

// applicationName is how the connection shows in pg_stat_activity, unless the DSN
// says otherwise.
const applicationName = "sqllock notify"

// parse understands a DSN of lib/pq or pgx.
func parse(dsn string) (*pgconn.Config, error) {
	config, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("%w: listen: %w", sqllock.ErrInvalid, err)
	}
	for name := range config.RuntimeParams {
		if isForDriver(name) {
			delete(config.RuntimeParams, name)
		}
	}
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = applicationName
	}
	return config, nil
}

// isForDriver tells whether a parameter is one that lib/pq, pgx or its pool take out of
// a DSN. The server would refuse the connection for it.
func isForDriver(name string) bool {
	switch name {
	case "binary_parameters", "disable_prepared_binary_result", "fallback_application_name",
		"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity":
		return true
	}
	return strings.HasPrefix(name, "pool_")
}
