package trial

import (
	"fmt"
	"strings"
	"time"
)

// clockPrecision is how much the clocks of SQLite, which counts milliseconds, and of this
// process can seem to differ.
const clockPrecision = 5 * time.Millisecond

// A record is what has happened in a demo.
type record struct {
	options  *options
	begun    time.Time
	rounds   int // that were finished
	overlaps int
	counter  int // the number in the file after the last round
	kill     time.Time
	expiry   time.Time // of the lease of the worker that was killed
	takeover time.Time // the first entry after the kill
	err      error     // the first of the output
}

// print prints, unless an error has occurred.
func (r *record) print(format string, args ...any) {
	if r.err == nil {
		_, r.err = fmt.Fprintf(r.options.out, format, args...)
	}
}

// line prints what a worker did.
func (r *record) line(at time.Time, worker int, format string, args ...any) {
	r.print("%8s  worker %d  %s\n", seconds(at.Sub(r.begun)), worker, fmt.Sprintf(format, args...))
}

// introduce explains the demo to a new user, and where the lock is.
func (r *record) introduce(place string) {
	text := "No lock keeps them from working at the same time."
	if !r.options.withoutLock {
		text = fmt.Sprintf("A process works only while it holds a lock, a row in %s. One of them will be killed while it holds the lock.", place)
	}
	r.print("%d processes repeatedly add 1 to the number in a file. %s\n\n", r.options.workers, text)
}

// finished records and prints a round.
func (r *record) finished(e event, worker int) {
	r.rounds++
	if r.takeover.IsZero() && !r.kill.IsZero() && e.At.After(r.kill) {
		r.takeover = e.At
		r.line(e.At, worker, "takes over, %s after the kill", seconds(e.At.Sub(r.kill)))
	}
	r.entered(e, worker)
	took := fmt.Sprintf("waited %s, held %s", seconds(e.Waited), seconds(e.Worked))
	if r.options.withoutLock {
		took = "worked " + seconds(e.Worked)
	}
	r.line(e.At.Add(e.Worked), worker, "has done round %d of %d, %s; the file contains %d", r.rounds, r.options.rounds, took, r.counter)
}

// killed records and prints that the worker that reported e was killed.
func (r *record) killed(e event, worker int, at time.Time) {
	r.kill, r.expiry = at, e.At.Add(e.Left)
	r.entered(e, worker)
	r.line(at, worker, "holds the lock and is killed (SIGKILL); its lease has %s left, until then no other worker can acquire the lock", seconds(r.expiry.Sub(at)))
}

// entered records and prints an overlap, if the worker that reported e was not alone.
func (r *record) entered(e event, worker int) {
	if e.Overlap {
		r.overlaps++
		r.line(e.At, worker, "OVERLAP: starts to work while another process is working")
	}
}

func (r *record) lost() int { return r.rounds - r.counter }

// faults returns the names of what must not be, and was.
func (r *record) faults() (faults []string) {
	if r.overlaps > 0 {
		faults = append(faults, "overlaps")
	}
	if r.lost() != 0 {
		faults = append(faults, "lost updates")
	}
	if !r.options.withoutLock && r.takeover.Before(r.expiry.Add(-clockPrecision)) {
		faults = append(faults, "a takeover before the lease had expired")
	}
	return faults
}

// summarize prints the sums as numbers, and then what they show.
func (r *record) summarize() {
	o, faults := r.options, r.faults()
	r.print("\noverlaps      %d\nlost updates  %d (%d rounds, the file contains %d)\n", r.overlaps, r.lost(), r.rounds, r.counter)
	takeover := seconds(r.takeover.Sub(r.kill))
	if !o.withoutLock {
		r.print("takeover      %s after the kill (lease left: %s of %v)\n", takeover, seconds(r.expiry.Sub(r.kill)), o.ttl)
	}
	switch {
	case o.withoutLock && len(faults) == 0:
		r.print("\nBy chance, no update was lost this time: no lock kept the processes apart.\n")
	case o.withoutLock:
		r.print("\nWithout a lock, the processes overlapped %d times, and %d of %d updates are lost, without any error. "+
			"Now run the same with a lock: sqllock demo\n", r.overlaps, r.lost(), r.rounds)
	case len(faults) > 0:
		r.print("\nThis must not happen: the lock did not keep its promise. Please report it: %s.\n", strings.Join(faults, ", "))
	default:
		r.print("\nNo two of the %d processes worked at the same time, so no update was lost. The lock of the killed process "+
			"was acquired by another one %s later, after its lease had expired.\n", o.workers, takeover)
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
