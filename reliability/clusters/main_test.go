//go:build linux

package clusters

import (
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestMain(m *testing.M) {
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it would report each connection that is broken here
	os.Exit(m.Run())
}
