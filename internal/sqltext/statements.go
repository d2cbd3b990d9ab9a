package sqltext

import (
	"cmp"
	"strings"

	"github.com/sqllock/sqllock/internal/clientid"

	"github.com/sqllock/sqllock/dialect"
)

// Statements are the texts of all statements, with named parameters and with the names
// of the tables filled in. The statements that delete rows notify [Names.Channel], if
// there is one.
//
// Statements serves sqllock's own packages. It is not covered by the promise of
// compatibility: fields may change or go in any version.
type Statements struct {
	// Acquire inserts the row of (region, key), or takes it over if it has expired or
	// carries this holder already. It reads no other row. If the database is Returning
	// and Draw is "", the row that it returns holds the fencing token. If it ReturnsHolder, it
	// returns CLIENT_ID, age and time left (µs) of the row, and the fencing token, or 0 if the
	// row was not acquired.
	Acquire string
	// AcquireAll is Acquire for several rows with different keys. If the database is
	// Returning, it returns LOCK_KEY and fencing token of each row that was acquired. If it
	// ReturnsHolder, it returns LOCK_KEY, CLIENT_ID and fencing token of each row.
	// :rows is a JSON array of {k, h, l}: LOCK_KEY, CLIENT_ID and :left; see also InOrder. If AcquireRow
	// is not "", it stands there once for each row instead, separated by commas.
	AcquireAll, AcquireRow string
	// Isolation is an expression that may end the list that Acquire and AcquireAll return:
	// the isolation in which the statement runs, in lower case, if it commits by itself. It is ""
	// if the database has no such expression.
	Isolation string
	// Outcome returns 1 and the fencing token if Acquire and Draw, which come before it in
	// the same message, have acquired the row, or 0. Without a source of tokens, the token is
	// 0. It is "" if the database takes one statement a message, or needs no Outcome.
	Outcome string
	// Look comes before the transaction in that message, where an acquisition would wait for a pinned row whoever has
	// it. AcquireUnheld and DrawUnheld then do nothing if another holder has the row, and OutcomeUnheld also returns how many such
	// rows Look has found, and CLIENT_ID, age and time left (µs) of it. They are "" if there is no such message.
	Look, AcquireUnheld, DrawUnheld, OutcomeUnheld string
	// Number returns the fencing token that DrawOne, which comes before it in the same
	// message, has drawn. It is "" where Outcome is.
	Number string
	// PeekAll returns the same columns as List, of the rows with one of :keys.
	PeekAll string
	// PeekCurrent is PeekAll on a server that may not have applied yet what was committed on another
	// one. It waits for that. It also returns a row without a REGION if the server is no member of its
	// cluster. BeforeCurrent and AfterCurrent are sent around it on the same connection, unless they
	// are "". PeekCurrent is "" where PeekAll reads what was committed.
	PeekCurrent, BeforeCurrent, AfterCurrent string
	// DrawOne draws the next fencing token. It is the last inserted id.
	DrawOne string
	// Draw draws the next fencing token if the row carries the holder; otherwise it
	// affects no row. The token is the last inserted id.
	Draw string
	// Trim deletes the rows below :token that Draw and DrawOne have left behind.
	Trim string
	// Peek returns CLIENT_ID, age and time left (µs) of one row.
	Peek string
	// List returns REGION, LOCK_KEY, CLIENT_ID, age and time left (µs) of all rows.
	List string
	// ListFirst returns the same columns of :limit rows: those that are held before those that
	// have expired, the oldest first.
	ListFirst string
	// Count returns how many rows of a region are held, are kept for the rest of a minimum hold, were kept so
	// and have expired, and have expired otherwise.
	Count string
	// Held counts the rows of (region, key) that carry the holder and have not expired.
	Held string
	// Renew makes the row that carries the holder last :left from now, if it has not
	// expired. It never shortens a lease.
	Renew string
	// Guard returns a row if the row of (region, key) carries the holder and has not
	// expired. It locks that row until the transaction ends, so that no other
	// transaction can change or delete it.
	Guard string
	// GuardByWriting does what Guard does by changing the row, and affects it exactly if
	// Guard would return it. It is for clusters that compare what transactions have written
	// when they commit. It is "" for databases that have none.
	GuardByWriting string
	// GuardAll is Guard for several rows, and returns how many there are. It locks them in the order
	// of their keys, as the statements that acquire do.
	GuardAll string
	// GuardAllByWriting is GuardByWriting for several rows.
	GuardAllByWriting string
	// Pick returns LOCK_KEY and CLIENT_ID of rows that have not expired, and locks them.
	// The rows carry one of :keys and one of :holders; the caller drops those whose key
	// and holder do not belong together. It skips rows that others have locked. It is ""
	// where RenewAll does all this itself.
	Pick string
	// PickAll picks what Pick returns, except that keys and holders belong together, and has the session
	// remember how many rows there are. :rows stands for PickRow, once for each row, separated by commas.
	// In the same transaction IfAll ends RenewAll, KeepAll or DeleteAll, which then changes no row unless
	// PickAll has picked :count of them, and AllPicked returns whether it has. All are "" where Pick is.
	PickAll, PickRow, IfAll, AllPicked string
	// PickAny returns the LOCK_KEYs of the rows with one of :keys, and locks them. It skips rows that
	// others have locked. It is "" where the statements that acquire do not wait for long.
	PickAny string
	// RenewAll is Renew for several rows. It skips rows that others have locked. If the
	// database is Returning, it returns LOCK_KEY and CLIENT_ID of each renewed row;
	// otherwise it must be given only rows that Pick has returned.
	RenewAll string
	// HeldAll returns LOCK_KEY and CLIENT_ID of rows that have not expired: all those
	// that are asked for, and possibly others that Pick might return.
	HeldAll string
	// Keep makes the row that carries the holder last :left from now, and gives it
	// the CLIENT_ID :next: statements that are still in flight for the holder no longer
	// find it. That one ends with a dash, a k and ten digits, by which Count tells such rows.
	Keep string
	// KeepAll is Keep for several rows, all with the same :left and :next. It skips rows that others have
	// locked. If the database is Returning, it returns LOCK_KEY and the new CLIENT_ID of each row;
	// otherwise it must be given only rows that Pick has returned.
	KeepAll string
	// Take is Acquire for a row that is there: it inserts none. TakeAll is so for several rows. They find each row by
	// its newest version: see [Dialect.WithoutScans]. They are "" where rows are not parked.
	Take, TakeAll string
	// Park frees the row that carries the holder, as Delete does, and leaves it where it is: expired, with the CLIENT_ID
	// :next, which is as that of Keep. ParkAll does so for several rows, and returns LOCK_KEY and CLIENT_ID as KeepAll
	// does. Both notify as Delete does.
	Park, ParkAll string
	// Delete deletes the row that carries the holder.
	Delete string
	// DeleteAll deletes several rows. It skips rows that others have locked. If the
	// database is Returning, it returns LOCK_KEY and CLIENT_ID of each deleted row;
	// otherwise it must be given only rows that Pick has returned.
	DeleteAll string
	// PickClient returns the LOCK_KEYs of up to 1000 rows of one client in a region, and
	// locks them. It skips rows that others have locked. It is "" where DeleteClient does
	// all this itself.
	PickClient string
	// DeleteClient deletes up to 1000 rows of one client in a region; if PickClient is not "",
	// only those with one of :keys. It skips rows that others have locked.
	DeleteClient string
	// CountClient counts the rows of one client in a region.
	CountClient string
	// PickExpired returns the LOCK_KEYs of up to 1000 expired rows of a region, and locks
	// them. It skips rows that others have locked. It is "" where DeleteExpired does all
	// this itself.
	PickExpired string
	// DeleteExpired deletes up to 1000 expired rows of a region; if PickExpired is not "", only
	// those with one of :keys.
	DeleteExpired string
	// WriteNames writes rows of the table of names, or that they are used still: :rows are as those of
	// AcquireAll, with ID and NAME in place of LOCK_KEY and CLIENT_ID. If WriteName is not "", it stands
	// there once for each row instead.
	WriteNames, WriteName string
	// Names returns REGION, ID and NAME of the names with one of :keys as their ID, of every region.
	Names string
	// Runs returns REGION, ID, NAME and age (µs) of the rows about runs, of every region, and RunsOf of those with one of
	// :keys as their ID. ForgetRuns deletes these, of one region. AddToName adds :holder, a number, to that in NAME of the
	// row with the ID :key.
	Runs, RunsOf, ForgetRuns, AddToName string
	// Waits returns REGION, ID, NAME and age (µs) of the rows of the table of names that say what processes wait for,
	// of every region, as far as they were written lately: a thousand at most.
	Waits string
	// OldNames returns the IDs of some names that have not been written for a day, or for 90 if they are about runs. DeleteNames deletes those
	// with one of :keys.
	OldNames, DeleteNames string
	// Columns returns one row: the result of Version; what is wrong with the encoding of the
	// session's text, or ""; and then the columns of the table, all NULL. Their names show the layout.
	Columns string
	// Tables returns what the catalog says of the tables. Each row is a fact about one of them, of seven texts:
	//   - LOCK, FENCE or NAME, which ends the name of the table,
	//   - exists, name: its kind; text: its engine,
	//   - flaw, name: what is wrong with it; flags: other if it is no table of its own; cure,
	//   - column, name, text: its type; flags: null if it may be NULL, default if it has one, implicit if it needs
	//     none, own if that is another value in each row, inexact if it does not keep an instant as it is, alters if it does not keep each text, uuids if only those, narrow; more:
	//     its digits of a second; cure: what makes it right,
	//   - collation, name: of which column; text: its name; flags: merges if it takes different texts for one, fixed if
	//     no other version of it has another order, lacks if its character set has not all characters; more: how its
	//     version has changed, or the character set; cure,
	//   - key, name: a unique index; text: one of its columns; flags: why it does not count; more: the place of the
	//     column; cure: what drops it,
	//   - sequence: its increment, cache, cycle, minimum and maximum.
	Tables string
	// Fence fails if the source of fencing tokens is missing. The columns that it returns show
	// what the source is; on MariaDB there is a row if it is a sequence.
	Fence string
	// Clock returns the database's clock, in µs since 1970-01-01 UTC.
	Clock string
	// Cluster returns names and values: what the server says of the cluster that it belongs
	// to. It is "" for databases that have none. ClusterVariables returns those of them that
	// every user may read.
	Cluster, ClusterVariables string
	// Pin returns which transaction has a row locked, and for how many µs it has been open, or -1 if
	// that is not known. It fails if the user lacks the rights, and returns nothing if the server does
	// not know. It is "" where no server does.
	Pin string
	// ReadOnly returns 1 if the server refuses writes, else 0.
	ReadOnly string
	// Version returns the name and version that the server reports, and what else tells engines apart.
	Version string
	// File returns the path of the database's file, or "" if it is in memory. It is "" for
	// databases on servers.
	File string
}

// rowColumns are REGION, LOCK_KEY, CLIENT_ID, age and time left (µs).
const rowColumns = "REGION, LOCK_KEY, COALESCE(CLIENT_ID, ''), {age}, {left}"

// Statements returns the statements for a layout and for the tables with the given names.
// If names.Fence is "", no fencing tokens are drawn.
func (d Dialect) Statements(layout dialect.Layout, names Names) Statements {
	f := d.fragments
	acquire, draw, trim, fence := f.acquire[layout], f.draw, f.trim, f.fence
	drawOne, outcome, number := f.drawOne, f.outcome, f.number
	token := f.token
	if names.Fence == "" {
		draw, drawOne, trim, fence, token = "", "", "", "", "0"
		if outcome != "" {
			outcome, number = "SELECT COUNT(*), 0 FROM {table} WHERE {row} AND CLIENT_ID = :holder", "SELECT 0"
		}
	}
	var acquireUnheld, drawUnheld, outcomeUnheld string
	if f.look != "" {
		acquireUnheld, outcomeUnheld = ifUnheld(acquire), strings.Replace(outcome, ", 0 ", ", 0"+lookedAt+" ", 1)+" AND "+unheld
		if draw != "" {
			drawUnheld, outcomeUnheld = draw+" AND "+unheld, outcome+lookedAt
		}
	}
	// {notify} ends a DELETE that returns no rows. {deletedClient} is CLIENT_ID in the
	// RETURNING of one that does.
	notify, deletedClient := "", "CLIENT_ID"
	if names.Channel != "" && f.notify != "" {
		call := strings.NewReplacer("{channel}", names.Channel, "{topic}", names.table()).Replace(f.notify)
		notify, deletedClient = " RETURNING "+call, "CASE WHEN "+call+" IS NOT NULL THEN CLIENT_ID END"
	}
	if layout == dialect.Spring6 {
		f.take, f.takeAll, f.park, f.parkAll = "", "", "", "" // a row without an instant of its own cannot be over at once
	}
	expiry, end := f.expiry(layout, ""), f.add(f.now, ":left")
	last := "EXPIRED_AFTER = " + end
	// A renewal that arrives late must not shorten what a later one has granted.
	prolong := "EXPIRED_AFTER = " + f.later("EXPIRED_AFTER", end)
	if layout == dialect.Spring6 {
		last = "CREATED_DATE = " + f.add(f.now, ":shift")
		prolong = last
	}
	var four, with, from, joined string
	update := f.lockTimeout.inUpdate
	switch {
	case layout != dialect.Spring6:
	case f.joins:
		// Vitess would limit an UPDATE of tables that are separated by commas, which MySQL refuses.
		four, with, joined = fourAlone, ", "+fourColumns, " JOIN "+fourColumns
	default:
		four, with, from = fourAlone, ", "+fourColumns, " FROM "+fourColumns
		if update != "" {
			update += with
		} else {
			update = from
		}
	}
	onlyMembers := ""
	if f.isMember != "" {
		onlyMembers = " AND " + f.isMember
	}
	fill := strings.NewReplacer(
		"{table}", names.Lock,
		"{schema}", names.Schema,
		"{table by key}", names.Lock+f.byKey,
		"{fence}", names.Fence,
		"{name}", names.Name,
		"{in schema}", strings.TrimSuffix(names.Lock, names.Prefix+"LOCK"),
		"{prefix}", names.Prefix,
		"{token}", strings.ReplaceAll(token, "{fence}", names.Fence),
		"{row}", "REGION = :region AND LOCK_KEY = :key"+f.anew,
		"{anew}", f.anew,
		"{of region}", f.ofRegion,
		"{newest}", f.newest,
		"{where anew}", strings.Replace(f.anew, " AND", " WHERE", 1),
		"{mine}", "REGION = :region AND "+f.mine,
		"{now}", f.now,
		"{end}", end,
		"{last}", last,
		"{prolong}", prolong,
		"{four}", four,
		"{with four}", with,
		"{from four}", from,
		"{joined}", joined,
		"{expired}", expiry+" < "+f.judged(layout, ""),
		"{kept}", "RTRIM(CLIENT_ID) LIKE '%-"+clientid.Mark+"__________'",
		"{held.expired}", f.expiry(layout, "held.")+" < "+f.judged(layout, "held."),
		"{valid}", expiry+" >= "+f.now+onlyMembers,
		"{member}", f.isMember,
		"{age}", f.elapsed("CREATED_DATE", f.now),
		"{left}", f.elapsed(f.judged(layout, ""), expiry),
		"{of client}", "REGION = :region AND SUBSTR("+f.bytes("CLIENT_ID")+", 1, LENGTH(:client)) = "+f.bytes(":client")+
			" AND LENGTH(RTRIM(CLIENT_ID)) = LENGTH(:client) + 11",
		"{notify}", notify,
		"{deletedClient}", deletedClient,
		"{lockTimeout}", f.lockTimeout.before,
		"{lockTimeout.select}", f.lockTimeout.inSelect,
		"{lockTimeout.update}", update,
		"{lockTimeout.delete}", f.lockTimeout.inDelete,
	).Replace
	var pickRow, ifAll, allPicked string
	if f.pickAll != "" {
		pickRow, ifAll, allPicked = "(:key, :holder)", " AND @sqllock_picked = :count", "SELECT @sqllock_picked = :count"
	}
	among, old := cmp.Or(f.naming.among, "ID IN "+f.list(":keys")), "SEEN < "+f.add(f.now, dayAgo)+" AND NOT ("+ofRuns+" AND SEEN >= "+f.add(f.now, runsAgo)+")"
	runs := "SELECT REGION, ID, NAME, " + f.elapsed("SEEN", f.now) + " FROM {name} WHERE "
	peekAll := cmp.Or(f.peekAll, "SELECT "+rowColumns+" FROM {table} WHERE REGION = :region AND LOCK_KEY IN "+f.list(":keys"))
	peeked := "{row}"
	if f.newest != "" {
		peeked = "{of region} AND LOCK_KEY = :key{newest}"
	}
	peekCurrent := ""
	if f.waits+f.before+f.isMember != "" {
		peekCurrent = f.waits + peekAll
	}
	if f.isMember != "" {
		peekCurrent += " UNION ALL SELECT '', '', '', 0, 0 FROM DUAL WHERE NOT ({member})"
	}
	return Statements{
		Acquire:    fill(acquire),
		AcquireAll: fill(f.acquireAll[layout]),
		AcquireRow: fill(f.acquireRow[layout]),
		PeekAll:    fill(peekAll),

		PeekCurrent: fill(peekCurrent), BeforeCurrent: f.before, AfterCurrent: f.after,

		Isolation: f.isolation,
		Outcome:   fill(outcome),
		Number:    number,

		Look: fill(f.look), AcquireUnheld: fill(acquireUnheld), DrawUnheld: fill(drawUnheld), OutcomeUnheld: fill(outcomeUnheld),

		DrawOne: fill(drawOne),
		Draw:    fill(draw),
		Trim:    fill(trim),
		Peek:    fill("SELECT COALESCE(CLIENT_ID, ''), {age}, {left} FROM {table} WHERE " + peeked),
		List: fill("SELECT " + rowColumns + " FROM {table}" +
			" ORDER BY REGION, LOCK_KEY"),
		ListFirst: fill("SELECT " + rowColumns + " FROM {table}" +
			" ORDER BY CASE WHEN {expired} THEN 1 ELSE 0 END, CREATED_DATE, REGION, LOCK_KEY LIMIT :limit"),
		Count: fill("SELECT COUNT(CASE state WHEN 0 THEN 1 END), COUNT(CASE state WHEN 1 THEN 1 END)," +
			" COUNT(CASE state WHEN 2 THEN 1 END), COUNT(CASE state WHEN 3 THEN 1 END) FROM (" +
			"SELECT CASE WHEN {kept} THEN CASE WHEN {expired} THEN 2 ELSE 1 END WHEN {expired} THEN 3 ELSE 0 END AS state" +
			" FROM {table} WHERE REGION = :region) AS counted"),
		Held:  fill("SELECT COUNT(*) FROM {table} WHERE {row} AND CLIENT_ID = :holder AND {valid}"),
		Renew: fill("{lockTimeout}UPDATE {table}{joined} SET {prolong}{lockTimeout.update} WHERE {row} AND CLIENT_ID = :holder AND {valid}{four}"),
		Guard: fill(f.guard),

		GuardByWriting: fill(f.guardByWriting),

		GuardAll:          fill(f.guardAll),
		GuardAllByWriting: fill(strings.Replace(f.guardByWriting, ofRow, "WHERE {mine}", 1)),

		Pick:    fill(f.pick),
		PickAll: fill(f.pickAll),
		PickRow: pickRow, IfAll: ifAll, AllPicked: allPicked,
		PickAny:  fill(f.pickAny),
		RenewAll: fill(f.renewAll),
		HeldAll:  fill(cmp.Or(f.heldAll, "SELECT LOCK_KEY, CLIENT_ID FROM {table by key} WHERE {mine} AND {valid}")),
		Keep: fill("{lockTimeout}UPDATE {table}{joined} SET CLIENT_ID = :next, {last}{lockTimeout.update}" +
			" WHERE {row} AND CLIENT_ID = :holder AND {valid}{four}"),
		KeepAll:       fill(strings.Replace(f.renewAll, "{prolong}", "CLIENT_ID = :next, {last}", 1)),
		Take:          fill(f.take),
		TakeAll:       fill(f.takeAll),
		Park:          fill(f.park),
		ParkAll:       fill(f.parkAll),
		Delete:        fill("{lockTimeout}DELETE FROM {table}{lockTimeout.delete} WHERE {row} AND CLIENT_ID = :holder{notify}"),
		DeleteAll:     fill(f.deleteAll),
		PickClient:    fill(f.pickClient),
		DeleteClient:  fill(f.deleteClient + "{notify}"),
		CountClient:   fill("SELECT COUNT(*) FROM {table} WHERE {of client}"),
		PickExpired:   fill(f.pickExpired),
		DeleteExpired: fill(f.deleteExpired + "{notify}"),
		WriteNames:    fill(f.naming.write),
		WriteName:     fill(f.naming.row),
		Names:         fill("SELECT REGION, ID, NAME FROM {name} WHERE " + among),
		Runs:          fill(runs + ofRuns + " LIMIT 10000"),
		RunsOf:        fill(runs + among),
		ForgetRuns:    fill("{lockTimeout}DELETE FROM {name} WHERE REGION = :region AND " + among),
		AddToName:     fill(f.naming.add),
		Waits: fill("SELECT REGION, ID, NAME, " + f.elapsed("SEEN", f.now) + " FROM {name} WHERE ID LIKE 'wait%' AND SEEN > " +
			f.add(f.now, waitsLast) + " LIMIT 1000"),
		OldNames:    fill("SELECT ID FROM {name} WHERE " + old + " LIMIT 500"),
		DeleteNames: fill("{lockTimeout}DELETE FROM {name} WHERE " + among + " AND " + old),
		Columns:     fill("SELECT server.version, " + f.session + ", held.* FROM (" + f.version + " AS version) AS server LEFT JOIN {table} AS held ON 1 = 0"),
		Tables:      fill(f.tables),
		Fence:       fill(fence),
		Clock:       "SELECT " + f.elapsed(f.epoch, f.now),
		Cluster:     f.cluster + f.member + f.clusterEnd,

		ClusterVariables: f.cluster + f.clusterEnd,

		Pin:      fill(strings.ReplaceAll(f.pin, "{unqualified}", names.table())),
		ReadOnly: f.readOnly,
		Version:  f.version,
		File:     f.file,
	}
}
