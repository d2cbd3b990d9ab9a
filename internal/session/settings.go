package session

import (
	"regexp"
	"strings"
)

// applicationName shows in the server's list of sessions.
const applicationName = "sqllock"

// forMariaDB matches a comment that MariaDB executes.
var forMariaDB = regexp.MustCompile(`(?s)/\*M!.*?\*/`)

// Rewrite returns a statement as the server is to get it. Arguments are not a part of it.
func (s Settings) Rewrite(text string) string {
	if s.NotMariaDB {
		return forMariaDB.ReplaceAllString(text, "")
	}
	return text
}

// Complete adds to the parameters of a PostgreSQL session what locks need, and removes what is meant for another
// driver or for a pool, which the server would refuse. What the DSN sets stays as it is, except for the isolation if
// s asks for one.
func (s Settings) Complete(parameters map[string]string) {
	for name := range parameters {
		if isForDriver(name) {
			delete(parameters, name)
		}
	}
	if _, named := parameters["application_name"]; !named {
		parameters["application_name"] = applicationName
	}
	if s.Pooled {
		return // they would be refused, or belong to a session that others use next
	}
	for name, value := range postgresDefaults {
		if _, set := parameters[name]; !set {
			parameters[name] = value
		}
	}
	if s.Serializable {
		parameters["default_transaction_isolation"] = "serializable"
	}
}

// postgresDefaults have the server notice a client that is gone. Otherwise it would keep the client's transaction
// open, and a row locked, for hours. Statements that wait for a row limit that themselves. Statements for rows that
// are named look them up in the index, however small the table was when they were planned: see
// [sqltext.Dialect.WithoutScans]. None is worth compiling: where the index has many pages for the few rows that the
// last ANALYZE saw, the server would take a batch for expensive, and compile each one for a millisecond and more.
var postgresDefaults = map[string]string{
	"enable_seqscan":                      "off",
	"idle_in_transaction_session_timeout": "10000", // ms
	"jit":                                 "off",
	"tcp_keepalives_idle":                 "15", // s
	"tcp_keepalives_interval":             "5",  // s
	"tcp_keepalives_count":                "3",
}

// isForDriver reports whether a parameter is for lib/pq, pgx or its pool.
func isForDriver(name string) bool {
	switch name {
	case "binary_parameters", "disable_prepared_binary_result", "fallback_application_name", "load_balance_hosts",
		"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity":
		return true
	}
	return strings.HasPrefix(name, "pool_")
}
