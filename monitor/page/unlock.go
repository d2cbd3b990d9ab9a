package page

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/listing"
)

// A confirmation is what the template of unlock shows.
type confirmation struct {
	Title string
	Row   rowView
	Shown sqllock.Row // the same, for the host
	Known bool        // the row was read; if not, it may be beyond the limit
	State string      // what to show: "ask", "gone", "removed", "kept", "refused" or "failed"
	Text  string      // the reason, if there is one
	// Action is the address that removes the row. It names the row, because browsers change line
	// breaks in the fields of a form.
	Action string
	Back   string // the address that the viewer came from
}

// confirm asks whether a row is to be removed.
func (p *page) confirm(w http.ResponseWriter, r *http.Request) {
	if p.options.AllowUnlock == nil {
		http.NotFound(w, r)
		return
	}
	c, ok := p.confirmation(w, r, r.URL.Query())
	if !ok {
		return
	}
	status := http.StatusOK
	if c.State == "gone" {
		status = http.StatusNotFound
	}
	render(w, status, "unlock.html", c)
}

// unlock removes the row that the viewer has confirmed.
func (p *page) unlock(w http.ResponseWriter, r *http.Request) {
	if p.options.AllowUnlock == nil {
		http.Error(w, "the page is read-only", http.StatusForbidden)
		return
	}
	if err := p.options.CrossOrigin.Check(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "bad form: "+err.Error(), http.StatusBadRequest)
		return
	}
	c, ok := p.confirmation(w, r, r.Form)
	if !ok {
		return
	}
	status := p.remove(r, &c)
	render(w, status, "unlock.html", c)
}

// remove removes the row of c if the host allows it, and says in c what has become of it.
func (p *page) remove(r *http.Request, c *confirmation) (status int) {
	if err := p.options.AllowUnlock(r, c.Shown); err != nil {
		c.State, c.Text = "refused", err.Error()
		return http.StatusForbidden
	}
	removed, err := p.registry.Repository().DeleteRow(r.Context(), c.Shown)
	if p.options.OnUnlock != nil {
		p.options.OnUnlock(r, Unlock{c.Shown, removed, err})
	}
	p.reader.expire()
	switch {
	case err != nil:
		c.State, c.Text = "failed", err.Error()
		if errors.Is(err, sqllock.ErrPinned) || errors.Is(err, sqllock.ErrInvalid) {
			return http.StatusConflict
		}
		return http.StatusBadGateway
	case !removed:
		c.State = "kept"
		return http.StatusConflict
	default:
		c.State = "removed"
		return http.StatusOK
	}
}

// confirmation returns the row that an address or a form names, with what was last read of it. If
// that is no row, it writes an error.
func (p *page) confirmation(w http.ResponseWriter, r *http.Request, values url.Values) (c confirmation, ok bool) {
	region, lockKey, holder := values.Get("region"), values.Get("lock_key"), values.Get("holder")
	lock := listing.Lock{Row: sqllock.Row{Region: region, LockKey: lockKey, Holder: holder}}
	if !isAddressable(lock.Row) {
		http.Error(w, "region, lock_key and holder name a row", http.StatusBadRequest)
		return c, false
	}
	s := p.reader.read(r.Context())
	q := p.queryOf(values)
	c = confirmation{Title: p.options.Title, State: "gone", Action: q.unlocking(lock.Row), Back: q.address("./")}
	if s.more || s.at.IsZero() {
		c.State = "ask" // its row may be beyond the limit
	}
	for _, l := range s.locks {
		if l.Region == region && l.LockKey == lockKey && l.Row.Holder == holder {
			lock, c.State, c.Known = l, "ask", true
		}
	}
	c.Row = p.row(q, alone(lock), s)
	if c.Shown = lock.Row; c.Known {
		c.Shown = lock.After(s.passed()).Row
		c.Shown.Key = lock.Key
	}
	return c, true
}
