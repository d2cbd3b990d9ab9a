package probe

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// What the protocol needs of the tables. Open refuses a table with a fault, and `sqllock doctor`
// and `sqllock verify` print the same faults.

// A Fault is how a table is not what the protocol needs.
type Fault struct {
	Table string // its name
	Text  string // what is wrong, as in "is a view"
	Cure  string // what to do: statements, separated by semicolons, or words
	// Bearable reports whether locks work all the same, until something else happens.
	Bearable bool
}

// String returns what is wrong, with the table's name.
func (f Fault) String() string { return f.Table + " " + f.Text }

// refusal returns an error about all faults that are not bearable, or nil.
func refusal(faults []Fault) error {
	var texts []string
	for _, f := range faults {
		if !f.Bearable {
			texts = append(texts, f.String()+": "+f.Cure)
		}
	}
	if texts == nil {
		return nil
	}
	return wrongTable("%s", strings.Join(texts, "; and "))
}

// whileUnused ends a cure that must not be tried while programs use the table.
const whileUnused = ", while no program uses the table"

// A catalog is what the server says of the tables: see [sqltext.Statements.Tables].
type catalog struct {
	inspector
	kinds         map[string]string // of the tables, by their relation
	engines       map[string]string
	columns       map[string]column // of the lock table
	fenceID       column            // that of the table of tokens
	texts         []collation
	keys          []key
	faults        []Fault
	isOther       bool // whether the lock table is no table of its own, as a view, so that its columns and keys say nothing
	isPartitioned bool
}

type column struct{ name, kind, flags, digits, cure string }

func (c column) is(flag string) bool { return slices.Contains(strings.Fields(c.flags), flag) }

// isFilled reports whether an INSERT may leave the column out.
func (c column) isFilled() bool { return c.flags != "" }

type collation struct{ column, name, flags, wrong, cure string }

func (c collation) is(flag string) bool { return slices.Contains(strings.Fields(c.flags), flag) }

// A key is a unique index of the lock table.
type key struct {
	name, flaw, drop string
	columns          []string
}

// isOwn reports whether the key tells the locks apart, and nothing else.
func (k key) isOwn() bool { return len(k.columns) == 2 && k.hasBoth() }

// hasBoth reports whether two locks never have the same values in the key.
func (k key) hasBoth() bool {
	return slices.Contains(k.columns, "LOCK_KEY") && slices.Contains(k.columns, "REGION")
}

func (k key) String() string { return k.name + " (" + strings.Join(k.columns, ", ") + ")" }

// readCatalog returns nil if the server does not answer: locks may work all the same.
func (i inspector) readCatalog(ctx context.Context) (*catalog, error) {
	c := &catalog{inspector: i, kinds: make(map[string]string), engines: make(map[string]string), columns: make(map[string]column)}
	err := c.read(ctx)
	if err == nil {
		return c, nil
	}
	switch i.dialect.Classify(err) {
	case sqltext.Transient, sqltext.OldPlan, sqltext.Blocked, sqltext.Stuck, sqltext.Closed:
		return nil, err
	default:
		return nil, ctx.Err()
	}
}

func (c *catalog) read(ctx context.Context) error {
	rows, err := c.db.QueryContext(ctx, c.dialect.Statements(dialect.Spring7, c.names).Tables)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
	for rows.Next() {
		var row [7]sql.NullString // NULL where MariaDB's EMPTY_STRING_IS_NULL has '' read so
		if err := rows.Scan(&row[0], &row[1], &row[2], &row[3], &row[4], &row[5], &row[6]); err != nil {
			return err
		}
		c.add(tableFact{
			table: row[0].String, fact: row[1].String, name: row[2].String, text: row[3].String, flags: row[4].String, more: row[5].String, cure: row[6].String,
		})
	}
	return rows.Err()
}

// A tableFact is a row of [sqltext.Statements.Tables], which says what the texts are for each kind of fact.
type tableFact struct {
	table string // LOCK, FENCE or NAME
	fact  string // its kind

	name, text, flags, more, cure string
}

// add notes a fact, or what is wrong by it.
func (c *catalog) add(f tableFact) {
	if f.table == "FENCE" && c.names.Fence == "" {
		return
	}
	switch found := (column{name: f.name, kind: f.text, flags: f.flags, digits: f.more, cure: f.cure}); f.fact {
	case "exists":
		if c.kinds[f.table] != temporary { // which hides another one of its name
			c.kinds[f.table], c.engines[f.table] = f.name, f.text
		}
	case "flaw":
		c.addFault(f.table, f.name, f.cure)
		c.isOther = c.isOther || f.table == "LOCK" && f.flags == "other"
	case "partitioned":
		c.isPartitioned = true
	case "column":
		if f.table == "LOCK" {
			c.columns[f.name] = found
		} else if f.name == "ID" {
			c.fenceID = found
		}
	case "collation":
		c.texts = append(c.texts, collation{column: f.name, name: f.text, flags: f.flags, wrong: f.more, cure: f.cure})
	case "key":
		c.addKey(f)
	case "sequence":
		c.judgeSequence(numbers{increment: f.name, cache: f.text, cycle: f.flags, least: f.more, most: f.cure})
	}
}

// addKey notes one column of a unique index.
func (c *catalog) addKey(f tableFact) {
	at := slices.IndexFunc(c.keys, func(k key) bool { return k.name == f.name })
	if at < 0 {
		at, c.keys = len(c.keys), append(c.keys, key{name: f.name, flaw: f.flags, drop: f.cure})
	}
	k, column := &c.keys[at], f.text
	n, _ := strconv.Atoi(f.more) // the column's place
	k.columns = append(k.columns, make([]string, max(0, n-len(k.columns)))...)
	k.columns[n-1] = column
}

// addFault notes what is wrong with a table: LOCK, FENCE or NAME.
func (c *catalog) addFault(of, text, cure string) { c.note(Fault{Text: text, Cure: cure}, of) }

// addBearable notes what may become wrong with the lock table.
func (c *catalog) addBearable(text, cure string) {
	c.note(Fault{Text: text, Cure: cure, Bearable: true}, "LOCK")
}

func (c *catalog) note(f Fault, of string) {
	f.Table = c.nameOf(of)
	if changesTable.MatchString(f.Cure) && !strings.Contains(f.Cure, "while no program") {
		f.Cure += whileUnused
	}
	c.faults = append(c.faults, f)
}

// changesTable matches statements for which programs must not be using the table.
var changesTable = regexp.MustCompile(`^(ALTER TABLE|DELETE FROM|DROP TABLE|CREATE TABLE|REINDEX)`)

func (c *catalog) nameOf(relation string) string {
	return map[string]string{"LOCK": c.names.Lock, "FENCE": c.names.Fence, "NAME": c.names.Name}[relation]
}

// judge notes all faults. layout is that of the lock table, and server what the server is.
func (c *catalog) judge(layout dialect.Layout, server string) {
	if c.dialect.Name == sqltext.MySQL().Name {
		c.judgeEngines(server)
	}
	if c.isOther || len(c.columns) == 0 { // or the catalog hides the table from this user
		return
	}
	c.judgeKeys()
	c.judgeColumns(layout)
	c.judgeTexts()
}

// temporary is the kind of a temporary table on MariaDB from 11.2 on. Others do not show it. versioned is that of a table of MariaDB whose
// rows have a history.
const temporary, versioned = "TEMPORARY", "SYSTEM VERSIONED"

// judgeEngines refuses each engine but InnoDB: another one has no transactions, or locks others for rows. An engine
// of a server that is not supported is not known.
func (c *catalog) judgeEngines(server string) {
	kind, seen := c.kinds["LOCK"]
	_, asked := c.kinds["SCHEMA"]
	if EngineOf(server).RefusalOf(c.dialect) != "" || EngineOf(server).Name == Vitess {
		return
	}
	switch {
	case !seen && asked || kind == temporary:
		c.addFault("LOCK", "is temporary, so that no other session sees it", "DROP TEMPORARY TABLE "+c.names.Lock+"; "+c.migrateUp())
		c.isOther = true
	case kind == "VIEW":
		c.addFault("LOCK", "is a view", "name the table itself by Prefix")
		c.isOther = true
	}
	for _, of := range []string{"LOCK", "FENCE", "NAME"} {
		if c.kinds[of] == versioned {
			c.note(Fault{
				Text: "has SYSTEM VERSIONING, so that the server keeps a row of history for each change, for ever",
				Cure: "ALTER TABLE " + c.nameOf(of) + " DROP SYSTEM VERSIONING", Bearable: true,
			}, of)
		}
		if engine := c.engines[of]; engine != "" && engine != "InnoDB" {
			c.addFault(of, "has the engine "+engine+", and a transaction or a lock of a row is kept by InnoDB alone", "ALTER TABLE "+c.nameOf(of)+" ENGINE=InnoDB")
		}
	}
	if kind := c.kinds["FENCE"]; (kind == "BASE TABLE" || kind == versioned) && (c.fenceID.kind != "bigint" || !c.fenceID.is("own")) {
		c.addFault("FENCE", "has no column ID BIGINT with AUTO_INCREMENT", "ALTER TABLE "+c.names.Fence+" MODIFY ID BIGINT NOT NULL AUTO_INCREMENT")
	}
}

// recreate is the cure where the database cannot change what is wrong. The rows are those of locks.
func (c *catalog) recreate() string {
	return fmt.Sprintf("while no program uses it, DROP TABLE %s; DROP TABLE IF EXISTS %sLOCK_MIGRATIONS; %s", c.names.Lock, c.prefix(), c.migrateUp())
}

func (c *catalog) prefix() string { return dbcall.PrefixOf(c.names) }

// migrateUp is the command that repairs what a migration creates.
func (c *catalog) migrateUp() string { return dbcall.MigrateUp(c.prefix()) }

// judgeKeys refuses a table in which two rows may be one lock, or two locks one row.
func (c *catalog) judgeKeys() {
	hasOwn := slices.ContainsFunc(c.keys, func(k key) bool { return k.isOwn() && k.flaw == "" })
	var flawed, drop string
	for _, k := range c.keys {
		switch {
		case !k.isOwn() || k.flaw == "":
		case !hasOwn:
			flawed, drop = flawed+": "+k.String()+" "+k.flaw, drop+k.drop+"; "
		case k.flaw == deferrable:
			c.addFault("LOCK", "has the unique index "+k.String()+", which "+k.flaw+", so that ON CONFLICT refuses it", k.drop)
		}
	}
	if !hasOwn {
		c.addFault("LOCK", "has no unique key of LOCK_KEY and REGION"+flawed+", so that two callers may have one lock", drop+c.createKey())
	}
	for _, k := range c.keys {
		if !k.hasBoth() && !slices.ContainsFunc(k.columns, c.isApart) {
			c.addFault("LOCK", "has the unique index "+k.String()+", which takes two locks for one", cmp.Or(k.drop, c.recreate()))
		}
	}
}

// deferrable is the flaw of a key of PostgreSQL that is checked at the end of a transaction.
// It hinders beside another key, too.
const deferrable = "is deferrable"

// createKey is the cure for a table without its key, in which a lock may have several rows.
func (c *catalog) createKey() string {
	index, table := c.names.Prefix+"LOCK_KEY_REGION", c.names.Lock
	if c.dialect.Embedded && c.names.Schema != "" { // there the index has the schema, and not the table
		index, table = c.names.Schema+"."+index, c.names.Prefix+"LOCK"
	}
	return fmt.Sprintf("DELETE FROM %s; CREATE UNIQUE INDEX %s ON %s (LOCK_KEY, REGION)%s", c.names.Lock, index, table, whileUnused)
}

// isApart reports whether each row of sqllock's has another value in a column, or NULL.
func (c *catalog) isApart(name string) bool {
	found := c.columns[name]
	isOurs := slices.Contains(ours, name)
	return found.is("own") || !isOurs && found.is("null") && !found.is("default")
}

// ownKey returns the name of the index by which statements look rows up, or "" for the primary key, and reports
// whether REGION is its first column.
func (c *catalog) ownKey() (name string, regionFirst bool) {
	for _, k := range c.keys {
		switch {
		case !k.isOwn() || k.flaw != "":
		case k.name == "PRIMARY":
			return "", k.columns[0] == "REGION"
		case identifier.MatchString(k.name):
			name, regionFirst = k.name, k.columns[0] == "REGION"
		}
	}
	return name, regionFirst
}

var identifier = regexp.MustCompile(`^[A-Za-z0-9_$]+$`)

// ours are the columns that sqllock fills.
var ours = []string{"LOCK_KEY", "REGION", "CLIENT_ID", "CREATED_DATE", "EXPIRED_AFTER"}

func (c *catalog) judgeColumns(layout dialect.Layout) {
	for _, name := range []string{"CREATED_DATE", "EXPIRED_AFTER"} {
		c.judgeTime(c.columns[name])
	}
	for _, name := range []string{"LOCK_KEY", "REGION", "CLIENT_ID"} {
		c.judgeText(c.columns[name])
	}
	ends, cure := c.columns["EXPIRED_AFTER"], c.migrateUp()
	if layout == dialect.Spring6 {
		ends = c.columns["CREATED_DATE"]
		cure = cmp.Or(ends.cure, c.recreate())
		cure = "DELETE FROM " + c.names.Lock + " WHERE CREATED_DATE IS NULL; " + cure
	}
	if ends.is("null") {
		c.addFault("LOCK", "has a column "+ends.name+" that may be NULL, so that a lease may have no end", cure)
	}
	if c.columns["EXPIRED_AFTER"].is("default") {
		drop := "ALTER TABLE " + c.names.Lock + " ALTER EXPIRED_AFTER DROP DEFAULT"
		if c.dialect.Embedded {
			drop = c.recreate()
		}
		c.addBearable("has a default for EXPIRED_AFTER, so that locks of a Spring before 7 would look free", drop)
	}
	for _, name := range slices.Sorted(maps.Keys(c.columns)) {
		switch found := c.columns[name]; {
		case slices.Contains(ours, name) || found.isFilled():
		case name == leaseEnd && layout == dialect.Spring6 && c.dialect.Name == sqltext.MySQL().Name:
			c.addFault("LOCK", "has the column "+name+" in place of EXPIRED_AFTER, since a migration to version 2 was interrupted", dbcall.MigrateGoto(2, c.prefix()))
		default:
			c.addFault("LOCK", "has a column "+name+" without a default, which sqllock does not fill", "drop the column, give it a default, or let it be NULL"+whileUnused)
		}
	}
}

// leaseEnd is the interim name of EXPIRED_AFTER in a migration to version 2 on MySQL and MariaDB. It holds the ends of leases, so
// it must not be dropped by hand.
const leaseEnd = "LEASE_END"

// judgeText refuses a column that would keep another text than the one that is written.
func (c *catalog) judgeText(found column) {
	has := "has a column " + found.name + " of type " + found.kind
	switch {
	case found.is("alters") || found.is("uuids") && !c.ascii:
		c.addFault("LOCK", has+", which does not keep each text as it is", cmp.Or(found.cure, c.recreate())) // SQLite cannot change a type
	case found.is("narrow") && found.name != "REGION":
		c.addFault("LOCK", has+", and it needs 36 characters", found.cure)
	case found.is("narrow") && found.is("implicit"):
		c.addBearable(has+", and a session without strict mode cuts a longer region", found.cure)
	}
}

// judgeTime refuses what does not keep an instant as each session writes it, or rounds it down so far that a lease
// ends before its holder knows.
func (c *catalog) judgeTime(found column) {
	digits, err := strconv.Atoi(found.digits)
	switch {
	case found.is("inexact"):
		c.addFault("LOCK", "has a column "+found.name+" of type "+found.kind+", which does not keep an instant as each session writes it", found.cure)
	case err == nil && digits < 3:
		c.addFault("LOCK", fmt.Sprintf("has a column %s that keeps %d digits of a second, so that a lease ends before its holder knows", found.name, digits), found.cure)
	case err == nil && digits < 6:
		c.addBearable(fmt.Sprintf("has a column %s that keeps %d digits of a second, where others keep 6", found.name, digits), found.cure)
	}
}

// judgeTexts concerns keys that are not ASCII, or not of one form: Spring's are the same in every collation.
func (c *catalog) judgeTexts() {
	if c.ascii {
		return
	}
	for _, text := range c.texts {
		has := "has a column " + text.column + " with the collation " + text.name
		switch {
		case text.is("lacks"):
			if text.column == "LOCK_KEY" {
				c.addFault("LOCK", "has a column LOCK_KEY with the character set "+text.wrong+", which lacks characters that a key may have", c.convert())
			}
		case text.is("merges"):
			if text.column == "LOCK_KEY" {
				c.addBearable(has+", which takes some keys that differ, as a and A, for one lock", c.convert())
			}
		case text.is("fixed"):
		case text.wrong != "":
			c.addBearable(has+", whose version has changed from "+text.wrong+": an index in the old order does not find all rows, and a key that is held is granted again", text.cure)
		default:
			c.addBearable(has+", whose order changes with the operating system or its libraries: then a key that is held may be granted again", c.convert())
		}
	}
}

// convert is the statement that gives keys and regions the collation of new tables.
func (c *catalog) convert() string {
	switch c.dialect.Name {
	case "postgres":
		// It builds the primary key anew under a lock that excludes all others, and those that wait behind
		// it: a second is less than a lease lasts.
		return "SET lock_timeout = '1s'; ALTER TABLE " + c.names.Lock + ` ALTER LOCK_KEY TYPE CHAR(36) COLLATE "C", ALTER REGION TYPE VARCHAR(100) COLLATE "C"`
	case "mysql":
		return "ALTER TABLE " + c.names.Lock + " CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
	default:
		return c.recreate()
	}
}

// merging returns the collation of LOCK_KEY if it takes different keys for one, or "".
func (c *catalog) merging() string {
	for _, text := range c.texts {
		if text.column == "LOCK_KEY" && text.is("merges") {
			return text.name
		}
	}
	return ""
}

// These are the numbers of a sequence, the source of fencing tokens on PostgreSQL and MariaDB.
type numbers struct{ increment, cache, cycle, least, most string }

// leastEnd is how far a sequence must reach: for longer than any program runs.
const leastEnd = 1 << 62

// judgeSequence refuses a sequence whose numbers may go back, or end. Numbers that are cached are in the memory of
// one server or session: another one, or a replica that is promoted, might give lower ones.
func (c *catalog) judgeSequence(s numbers) {
	most, err := strconv.ParseInt(s.most, 10, 64)
	least, _ := strconv.ParseInt(s.least, 10, 64)
	if s.increment == "1" && s.cache == "0" && s.cycle == "0" && least > 0 && (err != nil || most >= leastEnd) {
		return
	}
	change := " INCREMENT BY 1 MINVALUE 1 NO MAXVALUE CACHE 1 NO CYCLE"
	if c.dialect.Name == "mysql" {
		change = " INCREMENT BY 1 MINVALUE 1 NOMAXVALUE NOCACHE NOCYCLE"
	} else if most < leastEnd {
		change = " AS BIGINT" + change
	}
	c.addFault("FENCE", fmt.Sprintf("is a sequence with a cache of %s, an increment of %s, CYCLE %s and numbers from %s to %s, so that fencing tokens might go back or end",
		s.cache, s.increment, s.cycle, s.least, s.most), "ALTER SEQUENCE "+c.names.Fence+change)
}
