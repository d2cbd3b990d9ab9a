//go:build linux

package clusters

import (
	"flag"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/reliability/clusters/workload"
)

func TestMain(m *testing.M) {
	if workload.BeWorker() {
		return
	}
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it would report each connection that is broken here
	flag.Parse()
	os.Exit(m.Run())
}
