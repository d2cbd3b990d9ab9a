package tests_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/child"
)

var (
	must = check.Must
	is   = check.Is
)

func TestMain(m *testing.M) {
	roles := make(map[string]child.Role)
	for name, library := range libraries {
		roles[name] = library.role()
	}
	child.Main(m, roles)
}
