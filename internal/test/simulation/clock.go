package simulation

import "time"

// settle waits until all goroutines have done what they do in this instant.
func settle() { time.Sleep(time.Nanosecond) }

// databaseTime returns what the database's clock says at an instant.
func (w *World) databaseTime(t time.Time) time.Time {
	passed := t.Sub(w.history.began)
	return t.Add(w.plan.Offset + time.Duration(float64(passed)*w.plan.Drift))
}

// instantOf returns when the database's clock says something.
func (w *World) instantOf(said time.Time) time.Time {
	passed := said.Sub(w.history.began) - w.plan.Offset
	return w.history.began.Add(time.Duration(float64(passed) / (1 + w.plan.Drift)))
}
