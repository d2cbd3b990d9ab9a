package machine

import "sync"

// shared is the one watch of those who share it: a watch costs a little all the time.
var shared struct {
	mu    sync.Mutex
	users int
	watch *Watch
}

// Share returns a watch that others may use too, and a function that gives it back. The last one who
// does so ends it.
func Share() (w *Watch, giveBack func()) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.users++; shared.users == 1 {
		shared.watch = StartWatch()
	}
	return shared.watch, sync.OnceFunc(func() {
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if shared.users--; shared.users == 0 {
			shared.watch.Stop()
			shared.watch = nil
		}
	})
}
