package migrations

import (
	"context"
	"regexp"
	"strconv"
	"strings"

	"github.com/golang-migrate/migrate/v4/database"
)

// condition is a comment in a file. The statement after it runs only if the lock table has,
// or lacks, the column. Not all databases can express this in SQL.
var condition = regexp.MustCompile(`(?m)^-- if (\w+) (exists|is missing)$`)

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
	columns, err := s.columns(ctx, s.lock)
	return has(columns, condition[1]) == (condition[2] == "exists"), err
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
