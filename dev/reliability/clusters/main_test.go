//go:build linux

package clusters

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/dev/reliability/clusters/workload"
	"github.com/sqllock/sqllock/internal/test/machine"
	"github.com/sqllock/sqllock/internal/test/proc"
)

func TestMain(m *testing.M) {
	if workload.BeWorker() {
		return
	}
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it would report each connection that is broken here
	flag.Parse()
	os.Exit(run(m))
}

const (
	// apart is for how long the machine must stand still to take a cluster apart. Galera suspects a
	// node that is silent for 2 s.
	apart = time.Second
	// againVariable is an environment variable that is set in the second try, which is the last.
	againVariable = "SQLLOCK_CLUSTERS_AGAIN"
)

// final is true if a promise was broken. No machine excuses that.
var final atomic.Bool

// run runs the tests, and again if they have failed while the machine stood still: the nodes of a
// cluster then think that the others are gone, as they should.
func run(m *testing.M) int {
	began, watch := time.Now(), machine.StartWatch()
	defer watch.Stop()
	code := m.Run()
	last, still := os.Getenv(againVariable) != "", watch.StoodStill(began, time.Now())
	if code == 0 || *full > 0 || final.Load() || last || still < apart {
		return code
	}
	fmt.Printf("The machine stood still for %v meanwhile: again.\n", still)
	again := exec.Command(os.Args[0], os.Args[1:]...) //nolint:gosec,noctx // this program, until it ends
	again.Stdout, again.Stderr = os.Stdout, os.Stderr
	again.Env = append(os.Environ(), againVariable+"=yes")
	p, err := proc.Start(again, syscall.SIGKILL, nil)
	if err == nil {
		<-p.Ended
		err = p.Err
	}
	if err != nil {
		fmt.Println(err)
		return code
	}
	return 0
}
