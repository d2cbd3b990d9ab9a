package page

import (
	"slices"
	"time"

	"github.com/sqllock/sqllock/observe"
)

// An election is what the electors of this process do for a role. The JSON form is documented in
// docs/page.md.
type election struct {
	role     string
	electors int // that have not ended

	Leads bool      `json:"leads"`
	Since time.Time `json:"since"` // when it began to lead, or to campaign
	Terms int       `json:"terms"`
	// Ended says after which time, and why, the last term of this process ended, or is "".
	Ended string `json:"last_term,omitempty"`
}

func (r *Recorder) elected(e observe.Election) {
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.electionLocked(e)
	now := event{At: time.Now(), Severity: Note, Key: e.Role}
	switch {
	case e.State == observe.ElectorLeader:
		now.What = "leads"
		own.Leads, own.Since = true, now.At
		own.Terms++
	case e.State == observe.ElectorCandidate && e.Holder != "":
		now.What, now.Text = "leads no more", "after "+duration(e.Led)
		if e.Cause != nil {
			now.Text += ": " + e.Cause.Error()
		}
		own.Leads, own.Since, own.Ended = false, now.At, brief(now.Text)
	case e.State == observe.ElectorRetired:
		now.Severity, now.What = Good, "campaigns no more"
	default:
		now.Severity, now.What = Good, "campaigns"
		if own.electors == 1 {
			own.Since = now.At
		}
	}
	r.addLocked(now)
}

// electionLocked returns the election of an event, and counts its electors. One that has begun before the
// recorder observes it counts from its next event on. An election without electors is forgotten.
func (r *Recorder) electionLocked(e observe.Election) *election {
	of := func(known *election) bool { return known.role == e.Role }
	i := slices.IndexFunc(r.elections, of)
	if i < 0 {
		i = len(r.elections)
		r.elections = append(r.elections, &election{role: e.Role, electors: 1, Since: time.Now()})
	} else if e.State == observe.ElectorCandidate && e.Holder == "" {
		r.elections[i].electors++
	}
	own := r.elections[i]
	if e.State == observe.ElectorRetired {
		if own.electors--; own.electors == 0 {
			r.elections = slices.DeleteFunc(r.elections, of)
		}
	}
	return own
}
