//go:build linux

package checker_test

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/dev/reliability/clusters/checker"
	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
	"github.com/sqllock/sqllock/internal/test/check"
)

//go:embed testdata/histories.txt
var histories string

func TestCheck(t *testing.T) {
	t.Parallel()
	_, all, _ := strings.Cut(histories, "\ncase ")
	for text := range strings.SplitSeq(all, "\ncase ") {
		name, text, _ := strings.Cut(text, "\n")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := readCase(t, text)
			r := checker.Check(c.events, c.rows)
			got := map[string]int{
				"overlaps": len(r.Overlaps), "tokens": len(r.Tokens), "stale": len(r.Stale), "missing": len(r.Missing), "nonlinear": len(r.Nonlinear),
			}
			maps.DeleteFunc(got, func(_ string, n int) bool { return n == 0 })
			if !maps.Equal(got, c.want) {
				t.Errorf("%v, want %v: %q", got, c.want, r.Violations())
			}
		})
	}
}

// A testCase is one of the histories, and the violations that it has of each kind.
type testCase struct {
	events []history.Event
	rows   []checker.Row
	want   map[string]int
}

func readCase(t *testing.T, text string) testCase {
	t.Helper()
	c := testCase{want: make(map[string]int)}
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		values := make(map[string]string)
		for _, word := range words {
			name, value, _ := strings.Cut(word, "=")
			values[name] = value
		}
		number := func(text string) int64 {
			n, err := strconv.ParseInt(text, 10, 64)
			check.Must(t, err)
			return n
		}
		_, unguarded := values["unguarded"]
		_, lost := values["lost"]
		switch words[0] {
		case "want":
			delete(values, "want")
			for name, value := range values {
				c.want[name] = int(number(value))
			}
		case "row":
			row := checker.Row{ID: words[1], Key: "k", Token: number(values["token"]), Guarded: !unguarded}
			if row.Guarded {
				row.Earlier, row.Later = int(number(values["earlier"])), int(number(values["later"]))
			}
			c.rows = append(c.rows, row)
		default:
			e := event(words[1], words[0], number(words[2]), number(words[3]))
			switch {
			case e.Op == history.Acquire:
				e.Token, e.Holds = number(values["token"]), readHolds(t, values["holds"])
			case e.Op == history.Write:
				e.ID, e.Guarded = values["id"], true
			case !slices.Contains([]string{history.Alive, history.Renew, history.Release}, e.Op):
				t.Fatal(line)
			}
			if lost {
				e.Err = "the answer was lost"
			}
			c.events = append(c.events, e)
		}
	}
	return c
}

func readHolds(t *testing.T, text string) (holds []history.Hold) {
	t.Helper()
	for one := range strings.SplitSeq(text, ",") {
		key, share, _ := strings.Cut(one, ":")
		h := history.Hold{Key: key}
		_, err := fmt.Sscanf(share, "%d/%d", &h.Units, &h.Of)
		check.Must(t, err)
		holds = append(holds, h)
	}
	return holds
}

func event(op, lease string, from, to int64) history.Event {
	return history.Event{Op: op, Key: "k", Lease: lease, From: from, To: to}
}

// A long history with many ends that no worker has seen is decided: of a plain lock, and of many readers that
// wait for a writer.
func TestALongHistory(t *testing.T) {
	t.Parallel()
	const leases = 3000
	writer, reader := history.Hold{Key: "k", Units: 9, Of: 9}, history.Hold{Key: "k", Units: 1, Of: 9}
	lone := func(int64) history.Hold { return history.Hold{Key: "k", Units: 1, Of: 1} }
	shared := func(n int64) history.Hold {
		if n%7 == 0 {
			return writer
		}
		return reader
	}
	for name, holds := range map[string]func(int64) history.Hold{"lock": lone, "read-write lock": shared} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := func(wrong int64) (events []history.Event) {
				for i := range int64(leases) {
					id := fmt.Sprint(i)
					asked, last := 100*i-90, 100*i+50
					if holds(i) == reader {
						asked, last = asked-500, 700*(i/7)+650 // until shortly before the next writer
					}
					got, wrote := event(history.Acquire, id, asked, 100*i+10), event(history.Write, id, 100*i+20, 100*i+30)
					got.Token, got.Holds = i+1, []history.Hold{holds(i)}
					wrote.ID, wrote.Guarded = id, true
					events = append(events, got, event(history.Alive, id, last, last), wrote)
					if i%3 == 0 {
						events = append(events, event(history.Release, id, last+10, last+100))
					}
					if i == wrong {
						events = append(events, event(history.Renew, id, 100*i+810, 100*i+820))
					}
				}
				return events
			}
			if r := checker.Check(events(-1), nil); len(r.Nonlinear)+len(r.Overlaps) > 0 {
				t.Errorf("a good history: %q %q", r.Nonlinear, r.Overlaps)
			}
			if r := checker.Check(events(leases/2), nil); len(r.Nonlinear) != 1 {
				t.Error("the fault is not found")
			}
		})
	}
}
