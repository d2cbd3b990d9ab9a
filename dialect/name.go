package dialect

// naming are the texts about the table of names that are not the same everywhere.
type naming struct {
	write, row string
	among      string // the condition that a row has one of :keys as its ID; "" where items will do
}

// dayAgo is, in µs, how long a name is kept that is not written again.
const dayAgo = "-86400000000"

// upsertNames is the statement that writes names, of databases that know ON CONFLICT. The rows come in the order
// of their IDs, so that processes that write the same ones cannot deadlock.
func upsertNames(id, name, rows string) string {
	return "INSERT INTO {name} (ID, REGION, NAME, SEEN)\nSELECT " + id + ", :region, " + name + ", {now} FROM " + rows + " WHERE true" +
		"\nON CONFLICT (ID, REGION) DO UPDATE SET NAME = EXCLUDED.NAME, SEEN = EXCLUDED.SEEN"
}

// onDuplicateName is upsertNames for MySQL and MariaDB: see onDuplicateKeys for VALUES().
const onDuplicateName = "{lockTimeout}INSERT INTO {name} (ID, REGION, NAME, SEEN)\nVALUES :rows" +
	"\nON DUPLICATE KEY UPDATE NAME = VALUES(NAME), SEEN = VALUES(SEEN)"
