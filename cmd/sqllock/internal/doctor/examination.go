package doctor

import (
	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/locktable"
)

// An examination has what the checks share: a database that answers, and its lock
// table.
type examination struct {
	*connect.Connection
	flags      *connect.Flags
	names      dialect.Names
	statements dialect.Statements
	repository *sqllock.Repository // nil if the table is not usable
	cluster    locktable.Cluster   // what checkCluster has read
}

// rightsAdvice is the advice for a user who may lack a right.
func (e *examination) rightsAdvice() string {
	return "check that the user may SELECT, INSERT, UPDATE and DELETE in " + e.names.Lock + ", and use " + e.names.Fence
}
