package page

import (
	"context"
	"sync"
	"time"
)

// A Severity says how bad a [Finding] is.
type Severity string

// The severities, as `sqllock doctor` has them.
const (
	Good   Severity = "good"
	Note   Severity = "note"
	Broken Severity = "broken"
)

// A Finding is the result of a check: a line of `sqllock doctor`.
type Finding struct {
	Severity Severity `json:"severity"`
	Subject  string   `json:"subject"`
	Text     string   `json:"text"`
	// Advice says what to do about it, or is "".
	Advice string `json:"advice,omitempty"`
}

const (
	// checkEvery is how often the checks run while the page has viewers.
	checkEvery = 10 * time.Minute
	// checkTimeout ends them.
	checkTimeout = time.Minute
)

// checks run the host's checks in the background.
type checks struct {
	run func(context.Context) ([]Finding, error) // nil if there are none

	mu       sync.Mutex
	running  bool
	at       time.Time // of the end of the last run
	findings []Finding
}

// latest returns the findings of the last run, and when it ended: the zero time while the first
// one is under way. If they are old, it starts another run.
func (c *checks) latest() (findings []Finding, at time.Time) {
	if c.run == nil {
		return nil, time.Time{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running && (c.at.IsZero() || time.Since(c.at) >= checkEvery) {
		c.running = true
		go c.update()
	}
	return c.findings, c.at
}

func (c *checks) update() {
	ctx, cancel := context.WithTimeout(context.Background(), checkTimeout)
	defer cancel()
	findings, err := c.run(ctx)
	if err != nil {
		findings = append(findings, Finding{Severity: Broken, Subject: "checks", Text: err.Error()})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.findings, c.at, c.running = findings, time.Now(), false
}
