package sqltext

import "strings"

// Topic returns the payload of the notification that is sent on [Names.Channel] when the row of
// (region, lockKey) is deleted: the name of the table, the region and the key, separated
// by tabs, since none of them contains control characters.
//
// All tables share a channel, so a listener needs no further LISTEN when another table, region or
// key comes up. More channels would save nothing: the server wakes all its listeners for each
// notification.
//
// The schema is not part of it, because it may come from the prefix or from the search
// path. Tables of the same name in two schemas therefore share their topics; at worst a
// waiter is woken up early.
func (n Names) Topic(region, lockKey string) string {
	return strings.Join([]string{n.table(), region, lockKey}, "\t")
}

// table returns the table's name as the server stores it: in lower case, because the
// names in statements are not quoted.
func (n Names) table() string { return strings.ToLower(n.Prefix + "LOCK") }

// notifyDeleted notifies the topic of each row that a DELETE deletes. It stands in the
// RETURNING of that DELETE, so it needs no round trip of its own and does not change the
// count of rows. The server sends the notification when the transaction commits.
const notifyDeleted = "pg_notify('{channel}', '{topic}' || chr(9) || REGION || chr(9) || rtrim(LOCK_KEY))"
