package measure

import (
	"context"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
)

const (
	rowsEvery   = 10 * time.Second
	rowsTimeout = 5 * time.Second
	// rowsRest is how many times as long as the last count the pause after it is at least: a large table
	// is counted less often.
	rowsRest = 10
)

// Rows counts the rows of a repository.
type Rows struct {
	repository *sqllock.Repository

	mu   sync.Mutex
	next time.Time // when they are to be counted again
	last map[string]int64
	err  error
}

// NewRows returns a counter.
func NewRows(repository *sqllock.Repository) *Rows { return &Rows{repository: repository} }

// Count counts the rows by state, unless that was done a short time ago. The caller may not change the map.
func (r *Rows) Count(ctx context.Context) (map[string]int64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if began := time.Now(); !began.Before(r.next) {
		limited, cancel := context.WithTimeout(ctx, rowsTimeout)
		defer cancel()
		r.last, r.err = r.repository.Count(limited)
		r.next = began.Add(max(rowsEvery, rowsRest*time.Since(began)))
	}
	return r.last, r.err
}
