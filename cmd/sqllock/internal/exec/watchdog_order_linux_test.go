package exec

import (
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/program"
)

// TestWatchdogStandsStillOverItsLimit stops a watchdog until its limit has passed, and tells it later ones. The
// watchdog reads them before it decides: it does not send SIGTERM, but SIGKILL at the last limit.
func TestWatchdogStandsStillOverItsLimit(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	for range 8 { // a watchdog that does not read first decides at random
		program.WithTTL(t, 100*time.Millisecond, func(left time.Duration) (longEnough bool) {
			output, write := program.NewStream(t)
			cmd := script(t, "trap 'echo asked; exit' TERM; echo inside; while :; do sleep 1000 & wait; done")
			cmd.Stdout = write
			c := check.Value(process.Start(cmd, false, true))(t)
			write.Close()
			output.Await("inside")
			w := check.Value(startWatchdog())(t)
			defer w.dismiss()
			w.watch(c)
			<-w.ready
			limit := now().after(left)
			w.limit(limits{limit, never})
			eventually(t, "the watchdog has read the limit", func() bool { return unread(t, w) == 0 })
			check.Must(t, syscall.Kill(w.cmd.Process.Pid, syscall.SIGSTOP))
			eventually(t, "the watchdog is stopped", func() bool { return stopped(t, w.cmd.Process.Pid) })
			inTime := now() < limit
			for now() < limit {
				time.Sleep(time.Millisecond)
			}
			w.limit(limits{never, never})
			w.limit(limits{never, now()})
			check.Must(t, syscall.Kill(w.cmd.Process.Pid, syscall.SIGCONT))
			<-c.Ended
			if asked := output.Rest(); inTime {
				check.Equal(t, "output after a limit that was replaced", asked, "")
			}
			return inTime
		})
	}
}

// unread returns how many bytes a watchdog has not read yet.
func unread(t *testing.T, w *watchdog) (n int) {
	t.Helper()
	var err error
	check.Must(t, check.Value(w.pipe.SyscallConn())(t).Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }))
	check.Must(t, err)
	return n
}
