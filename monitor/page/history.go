package page

import (
	"math"
	"time"
)

// A history knows how many locks this process has held, and how many of its callers have waited, in
// each minute of the last hour, on average. It is not safe for concurrent use.
type history struct {
	until         time.Time // up to when the minutes are complete
	held, waiting int       // since then
	minutes       [60]minute
}

// A minute sums up for how long locks were held, and for how long callers waited, in it.
type minute struct {
	began        time.Time
	held, waited time.Duration
}

// count adds to what is held, and waited for, from now on.
func (h *history) count(now time.Time, held, waiting int) {
	h.advance(now)
	h.held += held
	h.waiting += waiting
}

// advance completes the minutes up to now.
func (h *history) advance(now time.Time) {
	for from := latest(h.until, now.Add(-time.Hour)); from.Before(now); {
		began := from.Truncate(time.Minute)
		m := h.at(began)
		if !m.began.Equal(began) {
			*m = minute{began: began}
		}
		passed := min(began.Add(time.Minute).Sub(from), now.Sub(from))
		m.held += time.Duration(h.held) * passed
		m.waited += time.Duration(h.waiting) * passed
		from = from.Add(passed)
	}
	h.until = now
}

// at returns the place of the minute that began at a time, which may still have another one.
func (h *history) at(began time.Time) *minute { return &h.minutes[began.Unix()/60%60] }

// An hourView is the chart of the last hour.
type hourView struct {
	Held, Waiting int // now
	Minutes       []minuteView
	// MostHeld and MostWaiting are the minutes with the greatest numbers.
	MostHeld, MostWaiting minuteView
}

// A minuteView is a minute in which locks were held or waited for. The JSON form is documented in
// docs/page.md.
type minuteView struct {
	At      time.Time `json:"at"`
	Held    float64   `json:"held"`
	Waiting float64   `json:"waiting"`
	Place   int       `json:"-"` // from the left
}

// view returns the last hour. The last minute is not over yet.
func (h *history) view(now time.Time) hourView {
	h.advance(now)
	v := hourView{Held: h.held, Waiting: h.waiting}
	first := now.Truncate(time.Minute).Add(-time.Hour + time.Minute)
	for place := range h.minutes {
		at := first.Add(time.Duration(place) * time.Minute)
		kept := *h.at(at)
		if !kept.began.Equal(at) || kept.held+kept.waited == 0 {
			continue
		}
		passed := min(now.Sub(at), time.Minute)
		m := minuteView{at, average(kept.held, passed), average(kept.waited, passed), place}
		v.Minutes = append(v.Minutes, m)
		if m.Held > v.MostHeld.Held {
			v.MostHeld = m
		}
		if m.Waiting > v.MostWaiting.Waiting {
			v.MostWaiting = m
		}
	}
	return v
}

// average returns how many there were on average, in thousandths.
func average(sum, of time.Duration) float64 {
	return math.Round(1000*float64(sum)/float64(of)) / 1000
}
