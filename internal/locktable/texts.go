package locktable

import (
	"database/sql"
	"strings"

	"github.com/sqllock/sqllock/dialect"
)

// statements are the compiled texts of one dialect, layout and table.
type statements struct {
	acquire, acquireAll, acquireRow, draw, drawOne, trim, peek, peekAll, peekMany, list, listFirst, count, held, renew, pick, pickAny, renewAll, heldAll, keep, keepAll statement

	peekCurrent statement // see current.go
	// guards are for one row, guardsAll for several.
	guards, guardsAll guards
	// acquireVerified and acquireAllVerified also return the isolation in which they ran, or are "".
	acquireVerified, acquireAllVerified statement
	// acquireMessage and acquireAllMessage are transactions in one message each, or "".
	acquireMessage, acquireAllMessage                                                      statement
	release, releaseAll, pickClient, deleteClient, countClient, pickExpired, deleteExpired statement
	cluster, clusterVariables, beforeCurrent, afterCurrent                                 string
}

// guards pin rows in a transaction of the user's: by locks, or by a change. anywhere is writing without the
// condition that the server is a member of its cluster.
type guards struct{ locking, writing, anywhere statement }

// compileAll compiles the texts. level is the isolation of transactions that are one message, or
// "" if there are none. If verify is true, there are acquisitions that return the isolation in which
// they ran.
func compileAll(d dialect.Dialect, layout dialect.Layout, names dialect.Names, region, level string, verify bool) (statements, error) {
	texts := d.Statements(layout, names)
	acquireAll := texts.AcquireAll
	if texts.AcquireRow != "" { // bindRows fills it in
		acquireAll = strings.Replace(acquireAll, ":rows", "{rows}", 1)
	}
	var acquireVerified, acquireAllVerified, acquireMessage, acquireAllMessage string
	if verify {
		acquireVerified, acquireAllVerified = texts.Acquire+", "+texts.Isolation, acquireAll+", "+texts.Isolation
	}
	if level != "" {
		acquireMessage = message(level, texts.Acquire, texts.Draw, texts.Outcome)
		acquireAllMessage = message(level, acquireAll, texts.DrawOne, texts.Number, texts.HeldAll)
		if d.ReturnsHolder {
			acquireAllMessage = message(level, acquireAll)
		}
	}
	all := statements{
		cluster: texts.Cluster, clusterVariables: texts.ClusterVariables,
		beforeCurrent: texts.BeforeCurrent, afterCurrent: texts.AfterCurrent,
	}
	for _, each := range []struct {
		text string
		into *statement
	}{
		{texts.Acquire, &all.acquire},
		{acquireAll, &all.acquireAll},
		{texts.AcquireRow, &all.acquireRow},
		{acquireVerified, &all.acquireVerified},
		{acquireAllVerified, &all.acquireAllVerified},
		{acquireMessage, &all.acquireMessage},
		{acquireAllMessage, &all.acquireAllMessage},
		{texts.PeekAll, &all.peekAll},
		{texts.PeekMany, &all.peekMany},
		{texts.PeekCurrent, &all.peekCurrent},
		{texts.DrawOne, &all.drawOne},
		{texts.DeleteAll, &all.releaseAll},
		{texts.Draw, &all.draw},
		{texts.Trim, &all.trim},
		{texts.Peek, &all.peek},
		{texts.List, &all.list},
		{texts.ListFirst, &all.listFirst},
		{texts.Count, &all.count},
		{texts.Held, &all.held},
		{texts.Renew, &all.renew},
		{texts.Guard, &all.guards.locking},
		{texts.GuardByWriting, &all.guards.writing},
		{texts.GuardAll, &all.guardsAll.locking},
		{texts.GuardAllByWriting, &all.guardsAll.writing},
		{texts.Pick, &all.pick},
		{texts.PickAny, &all.pickAny},
		{texts.RenewAll, &all.renewAll},
		{texts.HeldAll, &all.heldAll},
		{texts.Keep, &all.keep},
		{texts.KeepAll, &all.keepAll},
		{texts.Delete, &all.release},
		{texts.PickClient, &all.pickClient},
		{texts.DeleteClient, &all.deleteClient},
		{texts.CountClient, &all.countClient},
		{texts.PickExpired, &all.pickExpired},
		{texts.DeleteExpired, &all.deleteExpired},
	} {
		var err error
		if *each.into, err = compile(each.text, d, region); err != nil {
			return statements{}, err
		}
	}
	return all, nil
}

// messageLevel returns how an isolation is written in a message.
func messageLevel(level sql.IsolationLevel) string { return strings.ToUpper(level.String()) }

// message returns a transaction of the isolation, in one message: one round trip, whatever the
// number of statements. It depends on nothing that is set in the session. Empty statements
// are left out.
func message(level string, statements ...string) string {
	text := "SET TRANSACTION ISOLATION LEVEL " + level + ";\nSTART TRANSACTION;\n"
	for _, s := range statements {
		if s != "" {
			text += s + ";\n"
		}
	}
	return text + "COMMIT"
}
