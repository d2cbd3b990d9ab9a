package dialect

import "strings"

// InGroup returns the dialect of a member of a replication group of MySQL. Its statements acquire,
// renew and guard only where the server is ONLINE in the group; where it is not, a row counts as
// expired, and cannot be acquired. The user needs SELECT on replication_group_members.
func (d Dialect) InGroup() Dialect {
	f := d.fragments
	f.onlineOnly = " AND EXISTS (SELECT 1 FROM " + onlineMember + ")"
	f.acquire, f.acquireAll, f.acquireRow = make(map[Layout]string), make(map[Layout]string), make(map[Layout]string)
	for layout, row := range proposedRow {
		values := strings.TrimSuffix(strings.TrimPrefix(row, "("), ")")
		f.acquire[layout] = strings.Replace(onDuplicateKey[layout], "VALUES "+row, "SELECT "+values+" FROM "+onlineMember, 1)
		f.acquireAll[layout] = strings.Replace(onDuplicateKeys[layout], "VALUES :rows", "SELECT proposed.* FROM (VALUES :rows) AS proposed, "+onlineMember, 1)
		f.acquireRow[layout] = "ROW" + row
	}
	d.fragments = f
	return d
}

// onlineMember is a row if the server is ONLINE in its group, else none.
const onlineMember = "performance_schema.replication_group_members WHERE MEMBER_ID = @@server_uuid AND MEMBER_STATE = 'ONLINE'"
