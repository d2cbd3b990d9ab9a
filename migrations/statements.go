package migrations

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/golang-migrate/migrate/v4/database"
)

// condition is a comment in a file. The statement after it runs only if the lock table has
// one of the columns, or lacks it, or the column may be NULL. Not all databases can express this in SQL.
var condition = regexp.MustCompile(`(?m)^-- if ((?:\w+ or )?\w+) (exists|is missing|may be NULL|is missing or may be NULL)$\n`)

// comment is a line that does not belong to a statement.
var comment = regexp.MustCompile(`(?m)^--.*\n`)

// runFile runs the statements of a file one by one, since not all drivers can run several
// at once. Files have semicolons only at the ends of statements.
func (s *session) runFile(ctx context.Context, text string) error {
	for part := range strings.SplitSeq(text, ";") {
		statement := strings.TrimSpace(comment.ReplaceAllString(part, ""))
		if statement == "" {
			continue
		}
		wanted, err := s.wanted(ctx, condition.FindStringSubmatch(part))
		if err != nil {
			return err
		}
		if !wanted {
			continue
		}
		if s.script != nil {
			s.script.explain(condition.ReplaceAllString(part, ""))
		}
		if err := s.exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) wanted(ctx context.Context, condition []string) (bool, error) {
	if condition == nil {
		return true, nil
	}
	columns, err := s.lockColumns(ctx)
	names := strings.Split(condition[1], " or ")
	at := slices.IndexFunc(columns, func(c column) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(c.name, name) })
	})
	switch condition[2] {
	case "exists":
		return at >= 0, err
	case "is missing":
		return at < 0, err
	case "may be NULL":
		return at >= 0 && columns[at].mayBeNull, err
	default:
		return at < 0 || columns[at].mayBeNull, err
	}
}

func (s *session) lockColumns(ctx context.Context) ([]column, error) {
	if s.script != nil {
		return s.script.columns, nil
	}
	return s.columns(ctx, s.lock)
}

// write stores the version. For version 0 it drops the bookkeeping table.
func (s *session) write(ctx context.Context, version uint) error {
	if version == 0 {
		return s.exec(ctx, s.bookkeeping.fill("DROP TABLE {table}"))
	}
	return s.record(ctx, int(version))
}

// none is what is recorded instead of a version while Up makes new tables.
const none = database.NilVersion

// record stores a version, or none.
func (s *session) record(ctx context.Context, version int) error {
	number := strconv.Itoa(version)
	for _, text := range s.flavour.write {
		if err := s.exec(ctx, strings.ReplaceAll(s.bookkeeping.fill(text), "{version}", number)); err != nil {
			return err
		}
	}
	return nil
}
