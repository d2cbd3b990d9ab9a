package migrations

import (
	"context"
	"regexp"
	"strconv"
	"strings"
)

// condition is a comment in a file: the statement that follows is run only when
// it holds. Not every database can say so in SQL.
var condition = regexp.MustCompile(`(?m)^-- when (\w+) is (there|missing)$`)

// comment is a line that is no part of a statement.
var comment = regexp.MustCompile(`(?m)^--.*\n`)

// runFile runs statements one by one, which needs no driver that takes many at
// once. Files have semicolons nowhere but behind statements.
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
	return has(columns, condition[1]) == (condition[2] == "there"), err
}

// write notes the version. Nothing stays of version 0.
func (s *session) write(ctx context.Context, version uint) error {
	if version == 0 {
		return s.exec(ctx, s.bookkeeping.fill("DROP TABLE {table}"))
	}
	number := strconv.FormatUint(uint64(version), 10)
	for _, text := range s.flavour.write {
		if err := s.exec(ctx, strings.ReplaceAll(s.bookkeeping.fill(text), "{version}", number)); err != nil {
			return err
		}
	}
	return nil
}
