package notify

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
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
		return nil, fmt.Errorf("%w: listen: %w", sqllock.ErrInvalid, withoutDSN(err))
	}
	complete(config)
	return config, nil
}

// errParse stands for pgconn's errors about a DSN, which repeat it without the password alone.
var errParse = errors.New("pgx cannot parse the DSN")

// withoutDSN returns the part of such an error that contains nothing secret. With lib/pq's sslinline the name of a file is
// a private key.
func withoutDSN(err error) error {
	if file := new(fs.PathError); errors.As(err, &file) {
		return fmt.Errorf("a file that the DSN names: %w", file.Err)
	}
	return errParse
}

// complete names the connection, takes over what lib/pq says about TLS, and removes what the server would refuse.
func complete(config *pgconn.Config) {
	limitTLS(config)
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
	case "binary_parameters", "disable_prepared_binary_result", "fallback_application_name", "load_balance_hosts",
		minTLS, maxTLS,
		"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity":
		return true
	}
	return strings.HasPrefix(name, "pool_")
}

// Parameters of lib/pq, and their values.
const minTLS, maxTLS = "ssl_min_protocol_version", "ssl_max_protocol_version"

var versionsOfTLS = map[string]uint16{
	"TLSv1": tls.VersionTLS10, "TLSv1.1": tls.VersionTLS11, "TLSv1.2": tls.VersionTLS12, "TLSv1.3": tls.VersionTLS13,
}

// limitTLS gives the connection the versions of TLS that the parameters of lib/pq permit.
func limitTLS(config *pgconn.Config) {
	configs := []*tls.Config{config.TLSConfig}
	for _, fallback := range config.Fallbacks {
		configs = append(configs, fallback.TLSConfig)
	}
	for _, c := range configs {
		if c == nil {
			continue
		}
		if v, set := versionsOfTLS[config.RuntimeParams[minTLS]]; set {
			c.MinVersion = v
		}
		if v, set := versionsOfTLS[config.RuntimeParams[maxTLS]]; set {
			c.MaxVersion = v
		}
	}
}
