package server_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

func TestRequiredAndWanted(t *testing.T) {
	for _, test := range []struct{ require, ci, servers, required, wanted string }{
		{wanted: "postgres,pgbouncer,postgres-newest,mysql,oracle-mysql"},
		{ci: "true", servers: "mysql", required: "postgres,pgbouncer,mysql", wanted: "mysql"},
		{require: "oracle-mysql", ci: "true", servers: "pgbouncer", required: "oracle-mysql", wanted: "postgres,pgbouncer"},
		{require: " postgres-newest, mysql,", servers: "postgres,mysql", required: "postgres-newest,mysql", wanted: "postgres,mysql"},
		{require: "sqlite,spring,galera", ci: "true", servers: "sqlite"},
	} {
		t.Run(test.require+" CI="+test.ci+" "+test.servers, func(t *testing.T) {
			t.Setenv("SQLLOCK_REQUIRE", test.require)
			t.Setenv("CI", test.ci)
			t.Setenv("SQLLOCK_SERVERS", test.servers)
			for _, kind := range server.Kinds {
				if kind.Start == nil {
					continue
				}
				required, err := server.Required(kind.Name)
				if err != nil || required != slices.Contains(strings.Split(test.required, ","), kind.Name) {
					t.Errorf("%s required: %t, error %v", kind.Name, required, err)
				}
				wanted, err := server.Wanted(kind.Name)
				if err != nil || wanted != slices.Contains(strings.Split(test.wanted, ","), kind.Name) {
					t.Errorf("%s wanted: %t, error %v", kind.Name, wanted, err)
				}
			}
		})
	}
	t.Setenv("SQLLOCK_REQUIRE", "postgres,postgresql")
	t.Setenv("SQLLOCK_SERVERS", "maria")
	for _, ask := range []func(string) (bool, error){server.Required, server.Wanted} {
		if _, err := ask(server.Postgres); !errors.Is(err, server.ErrUnknownKind) {
			t.Errorf("error %v, not ErrUnknownKind", err)
		}
	}
}
