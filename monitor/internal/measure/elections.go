package measure

import (
	"context"
	"slices"
	"sync"

	"github.com/sqllock/sqllock/observe"
)

// endedRoles is how many roles without an elector keep their terms: those of the last ones are to be read,
// and those of all that ever were would not end.
const endedRoles = 100

// Elections are those in which electors of this process take part. The zero value is ready.
type Elections struct {
	mu     sync.Mutex
	byRole map[string]*Electors
	ended  []string // the roles that have no elector, the last one at the end
}

// Electors are those of one role.
type Electors struct {
	Running, Leading int
	Terms            int64
}

// Changed implements observe.Observer's Election.
func (c *Elections) Changed(_ context.Context, e observe.Election) {
	c.mu.Lock()
	defer c.mu.Unlock()
	role := Text(e.Role)
	of := c.byRole[role]
	if of == nil {
		if c.byRole == nil {
			c.byRole = make(map[string]*Electors)
		}
		of = new(Electors)
		c.byRole[role] = of
	}
	if of.Running == 0 {
		c.ended = slices.DeleteFunc(c.ended, func(other string) bool { return other == role })
	}
	switch {
	case e.State == observe.ElectorLeader:
		of.Leading++
		of.Terms++
	case e.State == observe.ElectorRetired:
		of.Running--
	case e.Holder != "": // a term is over
		of.Leading--
	default:
		of.Running++
	}
	if of.Running > 0 {
		return
	}
	if c.ended = append(c.ended, role); len(c.ended) > endedRoles {
		delete(c.byRole, c.ended[0])
		c.ended = slices.Clone(c.ended[1:])
	}
}

// Each calls do for each role.
func (c *Elections) Each(do func(role string, of Electors)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for role, of := range c.byRole {
		do(role, *of)
	}
}
