//go:build linux

package workload

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
	"github.com/sqllock/sqllock/internal/test/proc"
)

// Workers are the processes of a load.
type Workers struct {
	config  Config
	endKill context.CancelFunc
	killing sync.WaitGroup

	mu       sync.Mutex
	children []*child
	acquired map[string]int64 // when each of the [Config.Names] was last acquired
	count    int              // of acquisitions
	// Killed and Stopped count the workers that were killed with SIGKILL and stopped with
	// SIGSTOP. Read them after Stop.
	Killed, Stopped int
}

// Start starts the processes.
func Start(config Config) (*Workers, error) {
	w := &Workers{config: config, acquired: make(map[string]int64), endKill: func() {}}
	for i := range config.Processes {
		c, err := w.start(task{Config: config, Process: i})
		if err != nil {
			w.Stop()
			return nil, err
		}
		w.children = append(w.children, c)
	}
	if config.Kill {
		ctx, cancel := context.WithCancel(context.Background())
		w.endKill = cancel
		w.killing.Go(func() { w.kill(ctx) })
	}
	return w, nil
}

// Stop lets the workers come to an end, and returns when they have ended.
func (w *Workers) Stop() {
	w.endKill()
	w.killing.Wait()
	var all sync.WaitGroup
	for _, c := range w.children {
		all.Go(c.stop)
	}
	all.Wait()
}

// kill kills and stops workers every now and then.
func (w *Workers) kill(ctx context.Context) {
	r := rand.New(rand.NewPCG(w.config.Seed, 1)) //nolint:gosec // repeatable
	for pause(ctx, time.Duration(2+r.IntN(6))*time.Second) {
		i := r.IntN(len(w.children))
		if r.IntN(2) == 0 {
			w.Suspend(ctx, i, time.Duration(r.IntN(int(w.config.MaxHold*3/2))))
			continue
		}
		if err := w.Replace(i, w.config.Target); err != nil {
			return // the others go on
		}
	}
}

// Suspend stops a worker with SIGSTOP, and continues it after some time. Only one goroutine may call Suspend, and only one
// Replace, for other workers; none may with [Config.Kill].
func (w *Workers) Suspend(ctx context.Context, i int, d time.Duration) {
	c := w.children[i]
	w.Stopped++
	_ = c.Cmd.Process.Signal(syscall.SIGSTOP) // it is there
	pause(ctx, d)
	_ = c.Cmd.Process.Signal(syscall.SIGCONT)
}

// Replace kills a worker with SIGKILL, and starts another one on the target in its place.
func (w *Workers) Replace(i int, on Target) error {
	w.Killed++
	w.children[i].Kill()
	config := w.config
	config.Target = on
	next, err := w.start(task{Config: config, Process: i, Life: w.Killed})
	if err == nil {
		w.children[i] = next
	}
	return err
}

// AwaitAll waits until each of the [Config.Names] has been acquired after the given time of [history.Now]. It
// returns those that were not within the limit.
func (w *Workers) AwaitAll(ctx context.Context, since int64, limit time.Duration) (missing []string) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		missing = nil
		w.mu.Lock()
		for _, name := range w.config.Names() {
			if w.acquired[name] <= since {
				missing = append(missing, name)
			}
		}
		w.mu.Unlock()
		if len(missing) == 0 || !pause(ctx, 20*time.Millisecond) {
			return missing
		}
	}
}

// Acquisitions returns how many the workers have told of.
func (w *Workers) Acquisitions() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count
}

// A child is a worker's process.
type child struct {
	*proc.Process

	stdin io.Closer
}

// start starts a worker, which is killed when this process dies.
func (w *Workers) start(t task) (*child, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(os.Args[0]) //nolint:noctx,gosec // stop ends it
	cmd.Env = append(os.Environ(), workerVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	proc.OwnGroup(cmd)
	p, err := proc.Start(cmd, syscall.SIGKILL, func() { w.read(out) })
	return &child{p, stdin}, err
}

// read notes what a worker tells.
func (w *Workers) read(out io.Reader) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if names, ok := strings.CutPrefix(lines.Text(), "acquired "); ok {
			w.mu.Lock()
			for _, name := range strings.Split(names, ",") {
				w.acquired[name] = history.Now()
			}
			w.count++
			w.mu.Unlock()
		}
	}
}

// stop ends the worker, and kills it if it does not end.
func (c *child) stop() {
	_ = c.stdin.Close() // it may have ended
	limit := time.NewTimer(30 * time.Second)
	defer limit.Stop()
	select {
	case <-c.Ended:
	case <-limit.C:
		c.Kill()
	}
}
