package dialect

import "strings"

// Channel is the channel of LISTEN and NOTIFY on which PostgreSQL tells that rows
// were removed. It is one for all tables of a database, so that who listens has
// nothing to subscribe to at the server when another table, region or key comes
// up; [Names.Topic] tells them apart. A server wakes all its listeners for every
// notification, whatever the channel is called.
const Channel = "sqllock"

// Topic is what is told on [Channel] when the row of (region, lockKey) is removed:
// the name of the table, region and key, with tabs between them, for neither has
// control characters. The schema is left out, because it can be written in the
// prefix or be found by the search path: tables of one name in two schemas share
// their topics, and at worst somebody is woken for nothing.
func (n Names) Topic(region, lockKey string) string {
	return strings.Join([]string{n.table(), region, lockKey}, "\t")
}

// table is the name that the server knows the table by. Names are not quoted, so
// it has made them lower case.
func (n Names) table() string { return strings.ToLower(n.Prefix + "LOCK") }

// notifyGone tells the topic of each row that a DELETE removes, in its RETURNING:
// no further round trip, and the count of rows stays what it was. It is told when
// the transaction is committed, or not at all.
const notifyGone = "pg_notify('{channel}', '{topic}' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY))"
