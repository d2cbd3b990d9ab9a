package trial

import (
	"fmt"
	"os"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
)

// A crew are the workers of one trial.
type crew struct {
	workers []*process
	events  chan event    // what they report
	closing chan struct{} // closed when their reports are of no interest any more
}

func newCrew() *crew { return &crew{events: make(chan event), closing: make(chan struct{})} }

// start starts one more worker.
func (c *crew) start(o *options, flags *connect.Flags, directory string) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	p, err := startWorker(len(c.workers)+1, workerCommand(program, o, flags, directory), func(e event) {
		select {
		case c.events <- e:
		case <-c.closing:
		}
	})
	if err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	c.workers = append(c.workers, p)
	return nil
}

// stopTimeout is how long a worker may take to stop by itself. It has no children.
const stopTimeout = 3 * time.Second

// stop ends the workers, and returns when they have ended.
func (c *crew) stop() {
	close(c.closing)
	for _, p := range c.workers {
		_ = p.orders.Close() // they stop at the end of their orders
	}
	for _, p := range c.workers {
		select {
		case <-p.child.Ended:
		case <-time.After(stopTimeout):
			p.kill()
		}
	}
}
