package bell

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"
)

// pass lets time pass, and then all goroutines do what they do until they wait.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// soon is less than a second, and long enough for the polls after the begin of a sleep.
const soon = 500 * time.Millisecond

// A ring has the waiters poll, and a process that does not wait any more ends its sleep.
func TestBell(t *testing.T) {
	t.Parallel()
	for _, mariaDB := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := &server{mariaDB: mariaDB}
			b, reports := s.newBell(t)
			leave := b.Attend("one", "one")
			pass(soon)
			before := reports()
			if before != len(afterBegin) {
				t.Errorf("%d polls after the begin of a sleep", before)
			}
			b.Ring(true, "one")
			synctest.Wait()
			if got := reports() - before; got != 1 {
				t.Errorf("%d reports of a ring", got)
			}
			pass(soon)
			if texts, _ := s.seen(); len(texts) != 2 {
				t.Errorf("sleeps: %q", texts)
			}
			leave()
			pass(soon)
			b.Ring(true, "one")
			pass(time.Minute)
			if texts, killed := s.seen(); len(texts) > 0 || fmt.Sprint(killed) != fmt.Sprint([]string{b.own, "one"}) {
				t.Errorf("without waiters: sleeps %q, rung for %q", texts, killed)
			}
		})
	}
}

// A sleep goes on while its names are wanted, and its end is no ring.
func TestBell_OfItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		b, reports := s.newBell(t)
		leave := b.Attend("one", "one")
		pass(59*time.Second + soon)
		if texts, killed := s.seen(); len(texts) != 7 || len(killed) > 0 || reports() != 7*len(afterBegin) {
			t.Errorf("%d sleeps in a minute, %d reports, rung for %q", len(texts), reports(), killed)
		}
		leave()
	})
}

// Names that come and go end sleeps at a limited rate, however many there are.
func TestBell_ComeAndGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		b, _ := s.newBell(t)
		leaves := make([]func(), 300)
		for i := range leaves {
			leaves[i] = b.Attend(fmt.Sprint(i), fmt.Sprint(i))
		}
		began := time.Now()
		for i := range 10_000 {
			leaves[i%300]()
			leaves[i%300] = b.Attend(fmt.Sprint(i%300), fmt.Sprint(i%300))
			time.Sleep(999 * time.Microsecond)
		}
		texts, killed := s.seen()
		most := int(time.Since(began)/(leastSleep*maxNames/namesPerPause)) + 2
		if len(texts) > most || len(killed) > most || len(texts) < 10 {
			t.Errorf("%d sleeps, %d rings for itself, at most %d are to be", len(texts), len(killed), most)
		}
		for _, text := range texts {
			if n := strings.Count(text, "GET_LOCK"); n > maxNames+1 {
				t.Errorf("%d names in a statement", n)
			}
		}
		b.Ring(true, "150")
		synctest.Wait()
		for _, leave := range leaves {
			leave()
		}
	})
}

// What is no sleep is tried again after a second, two and so on, half a minute at most, and after a second if it has worked
// meanwhile. Limits on statements are no rings.
func TestBell_Failures(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		took time.Duration
	}{
		"the server is full": {answer(1040), 0}, "max_statement_time": {answer(1969), time.Second}, "max_execution_time": {answer(3024), time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := new(server)
				s.refuse(c.err, c.took)
				b, reports := s.newBell(t)
				leave := b.Attend("one", "one")
				pauses := func(n int) (all []time.Duration) {
					for range n {
						pass(c.took)
						began := time.Now()
						for texts, _ := s.seen(); len(texts) == 0; texts, _ = s.seen() {
							pass(10 * time.Millisecond)
						}
						all = append(all, time.Since(began).Round(100*time.Millisecond))
					}
					return all
				}
				pass(time.Nanosecond)
				s.seen()
				if got, want := fmt.Sprint(pauses(7)), "[1s 2s 4s 8s 16s 30s 30s]"; got != want {
					t.Errorf("pauses %s, want %s", got, want)
				}
				if c.took == 0 && reports() > 0 {
					t.Errorf("%d reports", reports())
				}
				s.refuse(nil, 0)
				pass(35 * time.Second)
				b.Ring(true, "one")
				pass(time.Millisecond)
				s.refuse(c.err, c.took)
				pass(soon)
				s.seen()
				if got := pauses(1)[0]; got > time.Second {
					t.Errorf("after a sleep: %v", got)
				}
				leave()
			})
		})
	}
}

// After a ring that has failed, as it does for the session of another user, none is sent for a second, two and so on, a minute at
// most.
func TestRing_Failures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		b, _ := s.newBell(t)
		s.refuse(answer(1095), 0)
		var silences []time.Duration
		for range 8 {
			b.Ring(true, "one")
			began := time.Now()
			for synctest.Wait(); !b.Rings(); {
				pass(10 * time.Millisecond)
			}
			silences = append(silences, time.Since(began).Round(100*time.Millisecond))
		}
		if got, want := fmt.Sprint(silences), "[1s 2s 4s 8s 16s 32s 1m0s 1m0s]"; got != want {
			t.Errorf("silences %s, want %s", got, want)
		}
		s.refuse(nil, 0)
		b.Ring(true, "one") // for nobody, which is no failure
		synctest.Wait()
		s.refuse(answer(1095), 0)
		b.Ring(true, "one")
		if pass(time.Second); !b.Rings() {
			t.Error("a success does not count")
		}
		b.Ring(true, "one") // refused soon after: the silence grows
		if pass(time.Second); b.Rings() {
			t.Error("the silence does not grow")
		}
		pass(2 * time.Minute)
		b.Ring(true, "one") // long after
		if pass(1100 * time.Millisecond); !b.Rings() {
			t.Error("the silence has grown by a failure of long ago")
		}
	})
}

// A failure is one for all that waits to be rung then, and for what was sent before: Close does not wait for a ring for each, and the
// silence does not grow with each. A process still ends its own sleep.
func TestRing_FailureOfMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		b, _ := s.newBell(t)
		s.refuse(answer(1095), 0)
		b.Ring(false, "one", "two")
		b.Ring(true, "three", "four", b.own)
		pass(time.Millisecond)
		if _, killed := s.seen(); fmt.Sprint(killed) != fmt.Sprint([]string{"three", b.own}) {
			t.Errorf("rung for %q", killed)
		}
		b.Mute(answer(1305))
		if pass(firstSilence); !b.Rings() {
			t.Error("the silence has grown")
		}
	})
}

// What keeps releases from waking anyone is told once a minute, and not what keeps all statements from an answer.
func TestTell(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		sleeps time.Duration
		does   func(*Bell)
		want   string // that each failure begins with, or "" if none is told
	}{
		"no right to KILL":  {answer(1095), 0, func(b *Bell) { b.Ring(true, "one") }, "KILL QUERY: Error 1095"},
		"no such function":  {nil, 0, func(b *Bell) { b.Mute(answer(1305)) }, "release: Error 1305"},
		"a limit on sleeps": {answer(1969), 0, func(b *Bell) { b.Attend("one", "one") }, "sleep: Error 1969"},
		"brief sleeps":      {nil, tooShort / 2, func(b *Bell) { b.Attend("one", "one") }, "sleep: " + errBrief.Error()},
		"no connection":     {mysql.ErrInvalidConn, 0, func(b *Bell) { b.Ring(true, "one"); b.Mute(mysql.ErrInvalidConn); b.Attend("one", "one") }, ""},
		"a restart":         {answer(1053), 0, func(b *Bell) { b.Ring(true, "one"); b.Attend("one", "one") }, ""},
		"a killed session":  {answer(1927), 0, func(b *Bell) { b.Ring(true, "one"); b.Attend("one", "one") }, ""},
		"sleeps and rings":  {nil, 0, func(b *Bell) { b.Attend("one", "one"); b.Ring(true, "one") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &server{sleeps: c.sleeps}
				s.refuse(c.err, 0)
				b, _ := s.newBell(t)
				want := 0
				for range 150 {
					c.does(b)
					pass(time.Second)
				}
				if c.want != "" {
					want = 3 // in two and a half minutes
				}
				s.mu.Lock()
				told := s.told
				s.mu.Unlock()
				if len(told) != want {
					t.Errorf("told %d times, want %d: %q", len(told), want, told)
				}
				for _, one := range told {
					if !strings.HasPrefix(one, c.want) {
						t.Errorf("told %q, want %q", one, c.want)
					}
				}
			})
		})
	}
}

// Of names of which nothing is known only those are rung for that are taken.
func TestRing_Unknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		b, reports := s.newBell(t)
		leave := b.Attend("3", "3")
		pass(soon)
		before := reports()
		names := make([]string, 3*maxAsked)
		for i := range names {
			names[i] = fmt.Sprint(i)
		}
		b.Ring(false, names...)
		synctest.Wait()
		if _, killed := s.seen(); fmt.Sprint(killed) != "[3]" || reports() != before+1 {
			t.Errorf("rung for %q, %d reports", killed, reports()-before)
		}
		leave()
	})
}

// Who is told of a failure may close the bell.
func TestTell_Close(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := new(server)
		s.refuse(answer(1095), 0)
		b, _ := s.newBell(t)
		closed := make(chan error, 1)
		b.Tell(func([]string) {}, func(error) { closed <- b.Close() })
		b.Attend("one", "one")
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}
