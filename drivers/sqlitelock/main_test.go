package sqlitelock_test

import (
	"testing"

	"github.com/sqllock/sqllock/internal/test/child"
)

func TestMain(m *testing.M) { child.Main(m, map[string]child.Role{"hold": hold}) }
