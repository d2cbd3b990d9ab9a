package server

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// The environment variables that say which servers matter. Both hold names of
// [Kinds], separated by commas.
const (
	// RequireVariable lists the servers whose absence is a failure.
	RequireVariable = "SQLLOCK_REQUIRE"
	// ServersVariable limits what is started, for a quick run at a desk.
	ServersVariable = "SQLLOCK_SERVERS"
)

// ErrUnknownKind is in the error for a name that is none of [Kinds]: a
// requirement with a slip in it would require nothing.
var ErrUnknownKind = errors.New("no such server")

// Required tells whether tests without the named server are to fail, not to be
// skipped. They are when SQLLOCK_REQUIRE names it. Where that is unset or
// empty, CI=true requires what every machine with Debian's packages can have.
func Required(name string) (bool, error) {
	names, err := listed(RequireVariable)
	if len(names) == 0 && os.Getenv("CI") == "true" {
		names = []string{SQLite, Postgres, PgBouncer, MySQL}
	}
	return slices.Contains(names, name), err
}

// Wanted tells whether the named server is to be started: by default each is,
// with SQLLOCK_SERVERS those that it names and what they stand in front of.
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
		if !slices.ContainsFunc(Kinds, func(k Kind) bool { return k.Name == name }) {
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
