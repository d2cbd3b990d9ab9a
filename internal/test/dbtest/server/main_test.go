package server_test

import (
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) {
	beParent()
	// The driver's log would report each crash that these tests cause.
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it refuses nil only
	testmain.Run(m)
}
