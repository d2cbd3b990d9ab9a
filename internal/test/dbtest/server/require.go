package server

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// The environment variables that select servers. Both hold comma-separated names of [Kinds].
const (
	// RequireVariable lists the servers that must be available.
	RequireVariable = "SQLLOCK_REQUIRE"
	// ServersVariable lists the servers that are started, for a quick local run.
	ServersVariable = "SQLLOCK_SERVERS"
)

// Clusters are the names of clusters, which SQLLOCK_REQUIRE may contain too. The module
// reliability starts them.
var Clusters = []string{"galera", "group-replication", "patroni"}

// ErrUnknownKind is wrapped by the error for a name that is not in [Kinds]: a misspelt name
// would require nothing.
var ErrUnknownKind = errors.New("no such server")

// Required reports whether tests fail, and are not skipped, if the named server is missing. That
// is so if SQLLOCK_REQUIRE contains the name. If SQLLOCK_REQUIRE is empty, CI=true requires
// the servers of Debian's packages.
func Required(name string) (bool, error) {
	names, err := listed(RequireVariable)
	if len(names) == 0 && os.Getenv("CI") == "true" {
		names = []string{SQLite, Postgres, PgBouncer, MySQL}
	}
	return slices.Contains(names, name), err
}

// Wanted reports whether the named server must be started. By default that is each server; with
// SQLLOCK_SERVERS those that it names, and those that they need.
func Wanted(name string) (bool, error) {
	names, err := listed(ServersVariable)
	if slices.Contains(names, PgBouncer) {
		names = append(names, Postgres)
	}
	return len(names) == 0 || slices.Contains(names, name), err
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
