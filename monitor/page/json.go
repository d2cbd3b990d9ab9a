package page

import (
	"encoding/json"
	"net/http"
	"time"
)

// A locksJSON is locks.json. Its form is documented in docs/page.md; fields are only ever added.
type locksJSON struct {
	At       *time.Time    `json:"at"`
	Error    string        `json:"error,omitempty"`
	Region   string        `json:"region"`
	Held     int           `json:"held"`
	Kept     int           `json:"kept"`
	Expired  int           `json:"expired"`
	Finished int           `json:"finished"`
	More     bool          `json:"more"`
	Matches  int           `json:"matches"`
	Page     int           `json:"page"`
	Pages    int           `json:"pages"`
	Locks    []rowView     `json:"locks"`
	Here     here          `json:"here"`
	Waiters  []waiterView  `json:"waiters"`
	Leaders  []leaderView  `json:"leaders"`
	Events   []event       `json:"events"`
	Findings []Finding     `json:"findings"`
	Renewals *renewalsJSON `json:"renewals"`
	Jobs     []jobView     `json:"jobs"`
	Runs     []runView     `json:"runs"`
	Hour     []minuteView  `json:"hour"`
	Seen     *seen         `json:"seen,omitempty"` // of one lock
}

// here is what this process holds and waits for.
type here struct {
	Held    int        `json:"held"`
	Waiting int        `json:"waiting"`
	Keys    []waitView `json:"keys"`
}

// renewalsJSON are how renewals go. It is null if there was none.
type renewalsJSON struct {
	At     time.Time  `json:"at"`
	Leases int        `json:"leases"`
	Error  string     `json:"error,omitempty"`
	Since  *time.Time `json:"failing_since,omitempty"`
	Done   int        `json:"renewals"`
	Failed int        `json:"failed"`
	Lost   int        `json:"lost"`
	Least  float64    `json:"left_ratio"`
}

// serveJSON writes what the page shows. If nothing could be read yet, the status is 503.
func (p *page) serveJSON(w http.ResponseWriter, r *http.Request) {
	q := p.queryOf(r.URL.Query())
	q.Flat = true
	v := p.view(r.Context(), q)
	answer := locksJSON{
		Error: v.Failed, Region: v.Region, More: v.More, Matches: v.Matches, Page: v.Page, Pages: v.Pages,
		Locks: listed(v.Rows), Here: here{v.HereHeld, v.HereWait, listed(v.Waits)},
		Waiters: listed(v.Waiters), Leaders: listed(v.Leaders), Events: listed(v.Events), Findings: listed(v.Findings), Renewals: v.Renewals.json(),
		Jobs: listed(v.Jobs), Runs: listed(v.Runs), Hour: listed(v.Hour.Minutes), Seen: v.Seen,
	}
	answer.Held, answer.Kept, answer.Expired, answer.Finished = v.Counts["held"], v.Counts["kept"], v.Counts["expired"], v.Counts["finished"]
	status := http.StatusServiceUnavailable
	if v.Known {
		answer.At, status = &v.ReadAt, http.StatusOK
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(answer) // a viewer that has left is no error
}

func (h renewals) json() *renewalsJSON {
	if h.At.IsZero() {
		return nil
	}
	j := &renewalsJSON{At: h.At, Leases: h.Leases, Done: h.Done, Failed: h.Failed, Lost: h.Lost, Least: h.Least}
	if h.Err != nil {
		j.Error, j.Since = h.Err.Error(), &h.Since
	}
	return j
}

// listed returns a list that is [] in JSON if it is empty.
func listed[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
