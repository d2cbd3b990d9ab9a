package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/clientid"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// refuseHeld returns ErrHeld if locks are held in the table. If the database can, it keeps
// the table unchanged until the end of the transaction. On MySQL, a lock that is acquired
// between this check and the first statement is not noticed.
//
// A process that goes by CREATED_DATE alone, as a Spring before 7 does, renews that also in a table
// with EXPIRED_AFTER, and so would not know that its lease has ended.
func (s *session) refuseHeld(ctx context.Context, st State, target uint) error {
	if s.force || st.Layout == 0 {
		return nil
	}
	if s.script != nil {
		s.script.warn(target)
		return nil
	}
	if s.flavour.freeze != "" {
		if err := s.exec(ctx, s.lock.fill(s.flavour.freeze)); err != nil {
			return err
		}
	}
	held, err := s.held(ctx, st, target == 0)
	if err != nil {
		return fmt.Errorf("read held locks: %w", err)
	}
	if len(held) == 0 {
		return nil
	}
	cure := "release them or wait; Force drops the table anyway"
	if target > 0 {
		cure = "stop all programs that use the table, and wait for the time-to-live of those that crashed; Force adds EXPIRED_AFTER anyway"
	}
	return fmt.Errorf("%w: %d in total, for example %s (%s)", ErrHeld, len(held), held[0], cure)
}

// held returns a description of each lock that has not expired. In a four-column table the
// time-to-live of the settings applies. A row that stays for the rest of a minimum hold
// counts only if kept is true.
func (s *session) held(ctx context.Context, st State, kept bool) (_ []string, err error) {
	list := s.dialect.Statements(st.Layout, sqltext.Names{Lock: s.lock.String()}).List
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
		client = strings.TrimSpace(client)
		if (!left.Valid || left.Int64 >= 0) && (kept || !clientid.IsKept(client)) {
			held = append(held, fmt.Sprintf("%s in region %s, held by %s for another %v",
				strings.TrimSpace(key), region, client, time.Duration(left.Int64)*time.Microsecond))
		}
	}
	return held, rows.Err()
}
