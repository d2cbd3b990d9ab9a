package bell

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

// A server does what MySQL does with the statements of a bell, in virtual time.
type server struct {
	mu     sync.Mutex
	taken  map[string]chan struct{} // by name; closed by a KILL
	slept  []time.Time              // when statements began to sleep
	texts  []string                 // of these
	killed []string                 // the names that were rung for
	told   []string                 // the failures that the bell has told
	// refuses, unless it is nil, is what a statement fails with, after took.
	refuses error
	took    time.Duration
	// sleeps, unless it is 0, is how long a statement for one name sleeps.
	sleeps time.Duration
	// mariaDB has a statement that is killed fail.
	mariaDB bool
}

func answer(number uint16) error { return &mysql.MySQLError{Number: number} }

// newBell returns a bell over pools of the server, and counts its reports.
func (s *server) newBell(t *testing.T) (b *Bell, reports func() int) {
	t.Helper()
	s.taken = make(map[string]chan struct{})
	d := sqltext.MySQL()
	pool := sql.OpenDB(connector{s})
	b = New(sql.OpenDB(connector{s}), pool, &d)
	var mu sync.Mutex
	n := 0
	b.Tell(func([]string) {
		mu.Lock()
		defer mu.Unlock()
		n++
	}, func(why error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.told = append(s.told, why.Error())
	})
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	return b, func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

var (
	taking = regexp.MustCompile(`GET_LOCK\('([^']*)'`)
	used   = regexp.MustCompile(`IS_USED_LOCK\('([^']*)'\)`)
)

func (s *server) query(ctx context.Context, text string) (string, error) {
	if strings.Contains(text, "IS NOT NULL") {
		return s.ask(text)
	}
	s.mu.Lock()
	s.slept, s.texts = append(s.slept, time.Now()), append(s.texts, text)
	if refused := s.refuses; refused != nil {
		s.mu.Unlock()
		time.Sleep(s.took)
		return "", refused
	}
	ends := make(chan struct{})
	all := taking.FindAllStringSubmatch(text, -1)
	for _, name := range all {
		s.taken[name[1]] = ends
	}
	s.mu.Unlock()
	last := cmp.Or(s.sleeps, 9*time.Second)
	if len(all) > 2 {
		last = time.Second
	}
	slept, err := "10 2", error(nil)
	select {
	case <-time.After(last):
	case <-ends:
		if slept = "11 2"; s.mariaDB {
			err = answer(1317)
		}
	case <-ctx.Done():
		err = ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range all {
		delete(s.taken, name[1])
	}
	return slept, err
}

// ask answers the question which names are taken.
func (s *server) ask(text string) (answer string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range used.FindAllStringSubmatch(text, -1) {
		if s.taken[name[1]] != nil {
			answer += "1"
		} else {
			answer += "0"
		}
	}
	return answer, s.refuses
}

func (s *server) kill(text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := used.FindStringSubmatch(text)[1]
	s.killed = append(s.killed, name)
	ends := s.taken[name]
	switch {
	case s.refuses != nil:
		return s.refuses
	case ends == nil:
		return answer(1094)
	}
	select {
	case <-ends:
	default:
		close(ends)
	}
	return nil
}

// refuse has statements fail from now on.
func (s *server) refuse(err error, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuses, s.took = err, took
}

// seen returns what the server has seen since the last call.
func (s *server) seen() (texts, killed []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	texts, killed = s.texts, s.killed
	s.texts, s.killed, s.slept = nil, nil, nil
	return texts, killed
}

// A connector makes connections to a server, and is one.
type connector struct{ *server }

func (c connector) Connect(context.Context) (driver.Conn, error) { return c, nil }
func (connector) Driver() driver.Driver                          { return nil }
func (connector) Prepare(string) (driver.Stmt, error)            { return nil, driver.ErrSkip }
func (connector) Close() error                                   { return nil }
func (connector) Begin() (driver.Tx, error)                      { return nil, driver.ErrSkip }

func (c connector) QueryContext(ctx context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
	value, err := c.query(ctx, text)
	if err != nil {
		return nil, err
	}
	return &rows{value: value}, nil
}

func (c connector) ExecContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(0), c.kill(text)
}

type rows struct {
	value string
	read  bool
}

func (*rows) Columns() []string { return []string{""} }
func (*rows) Close() error      { return nil }

func (r *rows) Next(to []driver.Value) error {
	if r.read {
		return io.EOF
	}
	to[0], r.read = r.value, true
	return nil
}
