package tests_test

import (
	"errors"
	"testing"

	"github.com/sqllock/sqllock/internal/test/child"
)

func TestMain(m *testing.M) {
	roles := make(map[string]child.Role)
	for name, library := range libraries {
		roles[name] = library.role()
	}
	child.Main(m, roles)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t *testing.T, err, wanted error) {
	t.Helper()
	if !errors.Is(err, wanted) {
		t.Errorf("error %v, want %v", err, wanted)
	}
}
