package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock/dialect"
)

// refuseHeld returns ErrHeld if locks are held in the table. If the database can, it keeps
// the table unchanged until the end of the transaction. On MySQL, a lock that is acquired
// between this check and the DROP TABLE is lost.
func (s *session) refuseHeld(ctx context.Context, st State) error {
	if s.force || st.Layout == 0 {
		return nil
	}
	if s.flavour.freeze != "" {
		if err := s.exec(ctx, s.lock.fill(s.flavour.freeze)); err != nil {
			return err
		}
	}
	held, err := s.held(ctx, st)
	if err != nil {
		return fmt.Errorf("read held locks: %w", err)
	}
	if len(held) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %d in total, for example %s (release them or wait; Options.Force drops the table anyway)",
		ErrHeld, len(held), held[0])
}

// held returns a description of each lock that has not expired. In a four-column table the
// time-to-live of the settings applies.
func (s *session) held(ctx context.Context, st State) (_ []string, err error) {
	list := s.dialect.Statements(st.Layout, dialect.Names{Lock: s.lock.String()}).List
	list = strings.ReplaceAll(list, ":ttl", strconv.FormatInt(s.ttl.Microseconds(), 10))
	rows, err := s.conn.QueryContext(ctx, list)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var held []string
	for rows.Next() {
		var region, key, client string
		var age, left sql.NullInt64 // NULL for an invalid date: such a row never expires
		if err := rows.Scan(&region, &key, &client, &age, &left); err != nil {
			return nil, err
		}
		if !left.Valid || left.Int64 >= 0 {
			held = append(held, fmt.Sprintf("%s in region %s, held by %s for another %v",
				strings.TrimSpace(key), region, strings.TrimSpace(client), time.Duration(left.Int64)*time.Microsecond))
		}
	}
	return held, rows.Err()
}
