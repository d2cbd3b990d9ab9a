package page

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/listing"
	"github.com/sqllock/sqllock/internal/printable"
	"github.com/sqllock/sqllock/internal/seatkey"
)

// A view is what the template of the page shows.
type view struct {
	Title, Region string
	Query         query
	Address       string // of the page itself, with the query
	Live          string // of the part that the script replaces
	Back          string // from a lock's own page
	Link          string // to it, to be sent
	Name, Count   string // of the lock
	JSON          string
	Columns       []columnView

	ReadAt time.Time
	Known  bool    // something was read
	Read   float64 // how long ago, in seconds
	Failed string

	Counts             map[string]int // of rows, by state
	More               bool
	Here               bool // this process may hold locks
	HereHeld, HereWait int
	Limit              int

	Rows        []rowView
	Matches     int
	Page, Pages int
	Prev, Next  string // addresses, or ""
	Missing     string // why a search has found nothing, or ""
	CanUnlock   bool

	Leaders  []leaderView
	Waits    []waitView
	Waiters  []waiterView // of the lock whose page it is, or of all
	Events   []event
	Renewals renewals
	Recorder bool
	Jobs     []jobView
	Runs     []runView // of jobs of all processes
	Hour     hourView
	Seen     *seen // of the lock whose page it is
	Findings []Finding
	Checks   bool
	Checked  time.Time
	Problems int
}

// A columnView is a column that the table can be sorted by.
type columnView struct {
	Name, Title, Address string
	Sorted               string // "ascending", "descending" or "none"
}

// A rowView is a line of the table. The JSON form is documented in docs/page.md; fields are only
// ever added.
type rowView struct {
	ID      string  `json:"-"`
	Key     *string `json:"key"`
	LockKey string  `json:"lock_key"`
	Region  string  `json:"region"`
	State   string  `json:"state"`
	Holder  string  `json:"holder"`
	Age     float64 `json:"age_seconds"`
	Left    float64 `json:"left_seconds"`
	Expired bool    `json:"expired"` // by a holder that has not finished
	Here    bool    `json:"here"`
	Token   int64   `json:"token,omitempty"`
	Waiting int     `json:"waiting"`

	Process *sqllock.Process `json:"process"`        // null if it is not known
	Of      string           `json:"of,omitempty"`   // the key of the semaphore or the read-write lock
	Seat    string           `json:"seat,omitempty"` // which row of it

	TTL     *float64 `json:"ttl_seconds"` // null if it is not known, as the next two
	Renewed *float64 `json:"renewed_seconds"`
	Overdue *bool    `json:"overdue"`
	Late    bool     `json:"-"` // it is overdue

	Name, Client, Number string    `json:"-"` // safe to show
	Waiters              int       `json:"-"` // callers of all processes that wait for long
	Waited               float64   `json:"-"` // by the first of them
	Count                string    `json:"-"` // of permits or readers, or ""
	Others               int       `json:"-"` // rows of the same lock that have holders
	HeldFor              float64   `json:"-"`
	Over                 bool      `json:"-"` // the lease has ended
	Since                time.Time `json:"-"`
	Link                 string    `json:"-"` // to its own page, or ""
	Hashed               bool      `json:"-"` // Name is a hash
	Full                 float64   `json:"-"`
	Low                  bool      `json:"-"` // little time is left
	Ended                float64   `json:"-"` // how long ago the lease ended
	Unlock               string    `json:"-"` // address, or ""
}

// A leaderView is an election. The client is "" if the role has no leader.
type leaderView struct {
	Role   string  `json:"role"`
	Client string  `json:"client"`
	Holder string  `json:"holder"`
	Age    float64 `json:"age_seconds"`
	Left   float64 `json:"left_seconds"`

	Process *sqllock.Process `json:"process"`
	Unknown bool             `json:"unknown,omitempty"` // its row may be beyond the limit
	Own     *election        `json:"here"`              // what this process does for it, or null
}

// A waitView is a key that callers of this process wait for.
type waitView struct {
	Key     string `json:"key"`
	Callers int    `json:"callers"`
}

// A waiterView is a process that waits for a lock for long. The JSON form is documented in docs/page.md.
type waiterView struct {
	Key      *string          `json:"key"`
	LockKey  string           `json:"lock_key"`
	Region   string           `json:"region"`
	ClientID string           `json:"client_id"`
	Process  *sqllock.Process `json:"process"`
	Waited   float64          `json:"waited_seconds"`
	Callers  int              `json:"callers"`

	Name, By string `json:"-"` // safe to show
}

// view returns what a viewer with a query sees.
func (p *page) view(ctx context.Context, q query) view {
	s := p.reader.read(ctx)
	v := view{
		Title: p.options.Title, Region: printable.Text(p.registry.Repository().Region()),
		Query: q, Address: q.address("./"), Live: q.address("live"), JSON: q.address("locks.json"), Columns: columnsOf(q),
		Back: q.onLock(lockID{}).address("./"), Link: query{Order: listing.Oldest, Page: 1, Lock: q.Lock}.address("./"),
		ReadAt: s.at, Known: !s.at.IsZero(), More: s.more, Limit: p.options.Limit, CanUnlock: p.options.AllowUnlock != nil,
		Recorder: p.options.Recorder != nil, Checks: p.options.Check != nil,
	}
	if s.err != nil {
		v.Failed = s.err.Error()
	}
	if v.Known {
		v.Read = seconds(time.Since(s.at))
	}
	v.addCounts(s, p.reader.keys)
	kept := p.options.Recorder.record()
	v.Events, v.Renewals, v.Jobs, v.Hour = kept.events, kept.renewals, kept.jobs, kept.hour
	p.reader.nameIn(v.Events)
	v.Leaders, v.Runs = p.leaders(s, kept.elections), p.runsOf(q, s)
	p.addRows(ctx, &v, s)
	v.addWaiters(s)
	if q.Lock != (lockID{}) {
		p.addLock(&v, kept)
	}
	v.Findings, v.Checked = p.checks.latest() //nolint:contextcheck // they belong to no viewer
	for _, f := range v.Findings {
		if f.Severity != Good {
			v.Problems++
		}
	}
	return v
}

func (v *view) addCounts(s snapshot, keys *strings.Replacer) {
	v.Counts = make(map[string]int)
	for _, state := range listing.States {
		v.Counts[state] = 0 // for the template
	}
	for _, l := range s.locks {
		v.Counts[l.State()]++
	}
	v.HereHeld, v.HereWait = len(s.here), s.callers
	for _, w := range s.waiting {
		v.Waits = append(v.Waits, waitView{keys.Replace(printable.Text(w.key)), w.count})
	}
	sortWaits(v.Waits)
	v.Here = v.Recorder || v.HereHeld+v.HereWait > 0
}

// addWaiters adds the processes that wait for the lock whose page it is, or for any.
func (v *view) addWaiters(s snapshot) {
	for _, w := range s.waits {
		if of := v.Query.Lock; of != (lockID{}) && (w.Region != of.Region || w.LockKey != of.LockKey) {
			continue
		}
		one := waiterView{
			LockKey: w.LockKey, Region: w.Region, ClientID: w.ClientID, Waited: seconds(w.Waited + s.passed()), Callers: w.Callers,
			Name: listing.WaitedFor(w), By: listing.WaitedBy(w),
		}
		if w.Key != "" {
			one.Key = &w.Key
		}
		if w.Process != (sqllock.Process{}) {
			one.Process = &w.Process
		}
		v.Waiters = append(v.Waiters, one)
	}
}

// addRows adds the rows of the viewer's page.
func (p *page) addRows(ctx context.Context, v *view, s snapshot) {
	chosen := v.Query.selected(s.locks)
	if key := cmp.Or(v.Query.Lock.Key, v.Query.Search); len(chosen) == 0 && s.more && key != "" {
		found, ok, err := p.reader.find(ctx, key)
		switch {
		case err != nil:
			v.Missing = err.Error()
		case ok && v.Query.fitsState(found):
			chosen, s.at = append(chosen, alone(found)), time.Now()
		}
	}
	v.Matches = len(chosen)
	if v.Query.Lock != (lockID{}) {
		v.Count = countOf(chosen)
	}
	v.Pages = max(1, (len(chosen)+pageSize-1)/pageSize)
	v.Page = min(v.Query.Page, v.Pages)
	if v.Page > 1 {
		v.Prev = v.Query.onPage(v.Page - 1).address("./")
	}
	if v.Page < v.Pages {
		v.Next = v.Query.onPage(v.Page + 1).address("./")
	}
	first := (v.Page - 1) * pageSize
	for _, g := range chosen[first:min(first+pageSize, len(chosen))] {
		v.Rows = append(v.Rows, p.row(v.Query, g, s))
	}
}

// row returns the line of a lock for the viewer with a query.
func (p *page) row(q query, g listing.Group, s snapshot) rowView {
	l := g.After(s.passed())
	client, number := l.Holder()
	row := rowView{
		ID: idOf(l), LockKey: l.LockKey, Region: l.Region, State: l.State(), Holder: l.Row.Holder,
		Age: seconds(l.Age), HeldFor: seconds(l.HeldFor()), Left: seconds(l.Left), Expired: l.State() == "expired", Over: l.Expired(), Count: g.Count(), Others: g.Others(),
		Of: cmp.Or(l.Seat.Key, l.Seat.Of), Seat: strings.TrimSpace(l.Seat.Kind + " " + l.Seat.Number), Since: s.at.Add(-g.Age),
		Name: l.Name(), Client: printable.Text(client), Number: number,
		Hashed: l.Key == "", Full: seconds(max(l.Full, time.Millisecond)), Low: l.Left < l.Full/3 || l.Overdue(), Late: l.Overdue(), Ended: seconds(-l.Left),
	}
	if ago, ok := l.Renewed(); ok {
		ttl, renewed := seconds(l.TTL), seconds(ago)
		row.TTL, row.Renewed, row.Overdue = &ttl, &renewed, &row.Late
	}
	callers, longest := listing.Total(s.waitsOf.Of(l))
	row.Waiters, row.Waited = callers, seconds(longest+s.passed())
	if l.Region == p.registry.Repository().Region() {
		of := l.LockKey
		if l.Seat.Number == seatkey.TurnNumber {
			of = l.Seat.Of
		}
		row.Waiting = s.waiting[of].count
	}
	for _, one := range g.Rows {
		if held, here := s.here[rowID{one.LockKey, one.Row.Holder}]; here {
			row.Here, row.Token = true, held.Token
		}
	}
	if l.Key != "" {
		row.Key = &l.Key
	}
	if l.Process != (sqllock.Process{}) {
		row.Process = &l.Process
	}
	if isAddressable(l.Row) {
		row.Link = q.onLock(p.lockOf(l)).address("./")
	}
	if p.options.AllowUnlock != nil && isAddressable(l.Row) && g.Kind == "" {
		row.Unlock = q.unlocking(l.Row)
	}
	return row
}

// leaders returns who leads the roles of the options, and those that this process campaigns for.
func (p *page) leaders(s snapshot, elections []election) []leaderView {
	var leaders []leaderView
	repository := p.registry.Repository()
	own := make(map[string]*election)
	roles := slices.Clone(p.options.Roles)
	for _, e := range elections {
		own[e.role] = &e
		if !slices.Contains(roles, e.role) {
			roles = append(roles, e.role)
		}
	}
	for _, role := range roles {
		lockKey, err := repository.LockKey(role)
		if err != nil {
			continue
		}
		leader := leaderView{Role: printable.Text(role), Unknown: s.more || s.at.IsZero(), Own: own[role]}
		for _, l := range s.locks {
			if l.LockKey != lockKey || l.Region != repository.Region() {
				continue
			}
			leader.Unknown = false
			if row := p.row(query{}, alone(l), s); !row.Over {
				leader.Client, leader.Holder, leader.Process = row.Client, printable.Text(row.Holder), row.Process
				leader.Age, leader.Left = row.Age, row.Left
			}
		}
		leaders = append(leaders, leader)
	}
	return leaders
}

// columnsOf returns the heads of the columns.
func columnsOf(q query) []columnView {
	titles := map[string]string{"key": "Key", "region": "Region", "holder": "Holder", "age": "Held for", "left": "Time left"}
	var columns []columnView
	for _, name := range listing.Columns {
		c := columnView{name, titles[name], q.sortedBy(name).address("./"), "none"}
		if q.Order.Column() == name {
			if c.Sorted = "ascending"; q.Order.Descending() {
				c.Sorted = "descending"
			}
		}
		columns = append(columns, c)
	}
	return columns
}

// idOf returns an identifier of a row that is the same each time it is shown.
func idOf(l listing.Lock) string {
	sum := sha256.Sum256([]byte(strconv.Quote(l.Region) + strconv.Quote(l.LockKey) + strconv.Quote(l.Row.Holder)))
	return "r" + hex.EncodeToString(sum[:6])
}

// seconds returns a duration in seconds, in whole milliseconds.
func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

// ofSeconds is the inverse of seconds.
func ofSeconds(s float64) time.Duration { return time.Duration(s*1000) * time.Millisecond }

func sortWaits(waits []waitView) {
	slices.SortFunc(waits, func(a, b waitView) int {
		return cmp.Or(-cmp.Compare(a.Callers, b.Callers), strings.Compare(a.Key, b.Key))
	})
}
