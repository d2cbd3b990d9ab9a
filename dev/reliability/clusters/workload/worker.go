//go:build linux

package workload

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
	"github.com/sqllock/sqllock/internal/bounded"
)

// workerVariable is an environment variable with the task of a copy of the test program.
const workerVariable = "SQLLOCK_CLUSTERS_WORKER"

// A task is what a worker is told.
type task struct {
	Config Config
	// Process is the place of the worker, and Life how many others have had it before.
	Process, Life int
}

// name is the name of the worker's history.
func (t task) name() string { return fmt.Sprintf("worker-%d-%d", t.Process, t.Life) }

// BeWorker does the work of a worker until its standard input ends, and returns true, if this
// process was started as one. It belongs at the begin of TestMain.
func BeWorker() bool {
	text := os.Getenv(workerVariable)
	if text == "" {
		return false
	}
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it would report each connection that is broken here
	var t task
	err := json.Unmarshal([]byte(text), &t)
	if err == nil {
		err = t.work()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, t.name(), err)
		os.Exit(1)
	}
	return true
}

// A worker is a process that locks and writes.
type worker struct {
	task
	log      *history.Writer
	app      *sqlx.DB // the application's pool
	locks    *sqlx.DB // that of a repository without Open
	registry *sqllock.Registry
	ways     []Way
	leases   atomic.Int64
	rows     atomic.Int64
	out      sync.Mutex
}

func (t task) work() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // its end is the signal
		cancel()
	}()
	log, err := history.NewWriter(t.Config.History, t.name())
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // each event was written
	w := &worker{task: t, log: log}
	if err := w.open(ctx); err != nil || ctx.Err() != nil {
		return nil // the cluster was down for as long as this worker was there
	}
	fmt.Println("working")
	var all sync.WaitGroup
	for g := range t.Config.Goroutines {
		all.Go(func() { w.loop(ctx, g) })
	}
	all.Wait()
	closing, end := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer end()
	_ = w.registry.Close(closing) // the cluster may be down
	return nil
}

// open connects to the cluster, as soon as it can be reached.
func (w *worker) open(ctx context.Context) (err error) {
	if w.locks, err = w.Config.Target.Open(w.Process, 4); err != nil {
		return err
	}
	if w.app, err = w.Config.Target.working().Open(w.Process, 6); err != nil {
		return err
	}
	for {
		w.registry, err = w.connect(ctx)
		if err == nil {
			w.ways, err = Ways(w.registry)
			w.ways = slices.DeleteFunc(w.ways, func(way Way) bool { return !slices.Contains(w.Config.Names(), way.Names[0]) })
			return err
		}
		if !errors.Is(err, sqllock.ErrDatabase) && ctx.Err() == nil {
			w.fatal("open", err)
		}
		if !pause(ctx, 200*time.Millisecond) {
			return err
		}
	}
}

// fatal notes an error that must not be.
func (w *worker) fatal(what string, err error) {
	now := history.Now()
	w.log.Add(history.Event{Op: history.Fatal, From: now, To: now, Err: fmt.Sprintf("%s: %s: %v", w.name(), what, err)})
}

func (w *worker) loop(ctx context.Context, goroutine int) {
	source := rand.NewPCG(w.Config.Seed, uint64(w.Process<<40|w.Life<<20|goroutine)) //nolint:gosec // small numbers
	r := rand.New(source)                                                            //nolint:gosec // repeatable
	for ctx.Err() == nil {
		v := &visit{worker: w, r: r, way: w.ways[r.IntN(len(w.ways))], renewed: r.IntN(2) == 0 && !w.Config.Outlive}
		if !v.do(ctx) {
			pause(ctx, time.Duration(20+r.IntN(80))*time.Millisecond)
		}
	}
}

// pause returns false if ctx ends first.
var pause = bounded.Sleep
