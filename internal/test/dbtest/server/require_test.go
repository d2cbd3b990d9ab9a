package server_test

import (
	"errors"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

func TestRequired(t *testing.T) {
	const postgres, pgbouncer, mysql, newest, oracle = server.Postgres, server.PgBouncer, server.MySQL, server.PostgresNewest, server.OracleMySQL
	for _, test := range []struct {
		require, ci string
		required    []string
	}{
		{"", "", nil},
		{"", "true", []string{postgres, pgbouncer, mysql}},
		{"oracle-mysql", "", []string{oracle}},
		{"oracle-mysql", "true", []string{oracle}},
		{" postgres-newest, mysql,", "", []string{newest, mysql}},
		{"sqlite,spring", "true", nil},
	} {
		t.Run(test.require+" CI="+test.ci, func(t *testing.T) {
			t.Setenv("SQLLOCK_REQUIRE", test.require)
			t.Setenv("CI", test.ci)
			wantExactly(t, server.Required, test.required, postgres, pgbouncer, mysql, newest, oracle)
		})
	}
}

func TestWanted(t *testing.T) {
	const postgres, pgbouncer, mysql = server.Postgres, server.PgBouncer, server.MySQL
	for servers, wanted := range map[string][]string{
		"":               {postgres, pgbouncer, mysql},
		"mysql":          {mysql},
		"sqlite":         nil,
		"pgbouncer":      {pgbouncer, postgres},
		"postgres,mysql": {postgres, mysql},
	} {
		t.Run(servers, func(t *testing.T) {
			t.Setenv("SQLLOCK_SERVERS", servers)
			wantExactly(t, server.Wanted, wanted, postgres, pgbouncer, mysql)
		})
	}
}

func TestUnknownNames(t *testing.T) {
	t.Setenv("SQLLOCK_REQUIRE", "postgres,postgresql")
	t.Setenv("SQLLOCK_SERVERS", "maria")
	for _, ask := range []func(string) (bool, error){server.Required, server.Wanted} {
		if _, err := ask(server.Postgres); !errors.Is(err, server.ErrUnknownKind) {
			t.Errorf("error %v, not ErrUnknownKind", err)
		}
	}
}

// wantExactly checks that the result is true for the names in yes, and false for all others.
func wantExactly(t *testing.T, ask func(string) (bool, error), yes []string, all ...string) {
	t.Helper()
	expected := make(map[string]bool)
	for _, name := range yes {
		expected[name] = true
	}
	for _, name := range all {
		if got, err := ask(name); got != expected[name] || err != nil {
			t.Errorf("%s: %t, error %v", name, got, err)
		}
	}
}
