package stmt

import (
	"database/sql"
	"strings"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// Statements are the compiled texts of one dialect, layout and table.
type Statements struct {
	Draw, DrawOne, Trim, Peek, PeekAll, List, ListFirst, Count, Held, Renew, Pick, PickRow, PickAny, HeldAll, Keep Statement

	// Plain acquires rows, InOrder only those whose turn is free, and Taking only those that are there, parked.
	Plain, InOrder, Taking Acquire
	Park                   Statement

	PeekCurrent Statement // see locktable/current.go
	// Guards are for one row, GuardsAll for several.
	Guards, GuardsAll                                                         Guards
	Pin                                                                       Statement // "" if no server can say it
	RenewAll, KeepAll, DeleteAll, ParkAll                                     Many
	Delete, PickClient, DeleteClient, CountClient, PickExpired, DeleteExpired Statement
	Cluster, ClusterVariables, BeforeCurrent, AfterCurrent                    string
}

// Acquire has the statements that acquire.
type Acquire struct {
	One, All, Row Statement
	// OneVerified and AllVerified also return the isolation in which they ran, or are "".
	OneVerified, AllVerified Statement
	// OneMessage and AllMessage are transactions in one message each, or "". Joint leaves its transaction open. LookMessage is
	// OneMessage that reads the row first, before its transaction.
	OneMessage, LookMessage, AllMessage, Joint Statement
}

// Acquiring returns the statements for claims.
func (s *Statements) Acquiring(claims ...Claim) *Acquire {
	for i := range claims {
		switch {
		case claims[i].Turn != 0:
			return &s.InOrder
		case claims[i].Parked:
			return &s.Taking
		}
	}
	return &s.Plain
}

// A Many is a statement that changes many rows. Where there is a pick, it must be given only rows that were picked.
// Message, unless it is "", is a transaction in one message that picks the rows and changes them, or changes none if
// it cannot pick all.
type Many struct{ Statement, Message Statement }

// Levels are the isolations of transactions that are sent in messages. They are "" where there are none.
// If Look is true, the server is known to take a message that reads the row before the transaction.
type Levels struct {
	Acquire, Joint string
	Look           bool
}

// Guards pin rows in a transaction of the user's: by locks, or by a change. Anywhere is Writing without the condition
// that the server is a member of its cluster.
type Guards struct{ Locking, Writing, Anywhere Statement }

// A Text is a text and where the statement goes that is made of it.
type Text struct {
	Text string
	Into *Statement
}

// CompileEach compiles texts.
func CompileEach(d sqltext.Dialect, region string, texts ...Text) (err error) {
	for _, each := range texts {
		if *each.Into, err = Compile(each.Text, d, region); err != nil {
			return err
		}
	}
	return nil
}

// compileAcquire compiles the texts that acquire. If verify is true, some return the
// isolation in which they ran.
func compileAcquire(d sqltext.Dialect, texts sqltext.Statements, region string, in Levels, verify bool) (a Acquire, err error) {
	all := texts.AcquireAll
	if texts.AcquireRow != "" { // bindRows fills it in
		all = strings.Replace(all, ":rows", "{rows}", 1)
	}
	var oneVerified, allVerified string
	if verify {
		oneVerified, allVerified = texts.Acquire+", "+texts.Isolation, all+", "+texts.Isolation
	}
	many := []string{all, texts.DrawOne, texts.Number, texts.HeldAll}
	if d.ReturnsHolder {
		many = many[:1]
	}
	look := ""
	if in.Look && texts.Look != "" && in.Acquire != "" {
		// It does not begin with SELECT, by which a proxy may tell what goes to a replica. SET TRANSACTION comes after it: that is for
		// the next transaction, as this SELECT is one.
		look = "DO 0;\n" + texts.Look + ";\n" + message(in.Acquire, texts.AcquireUnheld, texts.DrawUnheld, texts.OutcomeUnheld)
	}
	return a, CompileEach(d, region,
		Text{texts.Acquire, &a.One},
		Text{all, &a.All},
		Text{texts.AcquireRow, &a.Row},
		Text{oneVerified, &a.OneVerified},
		Text{allVerified, &a.AllVerified},
		Text{message(in.Acquire, texts.Acquire, texts.Draw, texts.Outcome), &a.OneMessage},
		Text{look, &a.LookMessage},
		Text{message(in.Acquire, many...), &a.AllMessage},
		Text{begun(in.Joint, many...), &a.Joint},
	)
}

// CompileAll compiles the texts. If verify is true, there are acquisitions that return the isolation in which they
// ran. anywhere is d without the condition that the server is a member of its cluster.
func CompileAll(d, anywhere sqltext.Dialect, layout dialect.Layout, names sqltext.Names, region string, in Levels, verify bool) (Statements, error) {
	texts, elsewhere := d.Statements(layout, names), anywhere.Statements(layout, names)
	inOneMessage := func(change string) string {
		if in.Joint == "" || texts.PickAll == "" {
			return ""
		}
		pick := strings.Replace(texts.PickAll, ":rows", "{rows}", 1)
		return message(MessageLevel(sql.LevelReadCommitted), pick, change+texts.IfAll, texts.AllPicked)
	}
	all := Statements{
		Cluster: texts.Cluster, ClusterVariables: texts.ClusterVariables,
		BeforeCurrent: texts.BeforeCurrent, AfterCurrent: texts.AfterCurrent,
	}
	var err error
	if all.Plain, err = compileAcquire(d, texts, region, in, verify); err != nil {
		return Statements{}, err
	}
	if d.Turns(names).Begin != "" {
		if all.InOrder, err = compileAcquire(d.InOrder(), d.InOrder().Statements(layout, names), region, in, verify); err != nil {
			return Statements{}, err
		}
	}
	if texts.Park != "" {
		taking := texts
		taking.Acquire, taking.AcquireAll = texts.Take, texts.TakeAll
		if all.Taking, err = compileAcquire(d, taking, region, in, verify); err != nil {
			return Statements{}, err
		}
	}
	err = CompileEach(d, region, []Text{
		{texts.Park, &all.Park},
		{texts.ParkAll, &all.ParkAll.Statement},
		{texts.PeekAll, &all.PeekAll},
		{texts.PeekCurrent, &all.PeekCurrent},
		{texts.DrawOne, &all.DrawOne},
		{texts.DeleteAll, &all.DeleteAll.Statement},
		{inOneMessage(texts.DeleteAll), &all.DeleteAll.Message},
		{texts.Draw, &all.Draw},
		{texts.Trim, &all.Trim},
		{texts.Peek, &all.Peek},
		{texts.Pin, &all.Pin},
		{texts.List, &all.List},
		{texts.ListFirst, &all.ListFirst},
		{texts.Count, &all.Count},
		{texts.Held, &all.Held},
		{texts.Renew, &all.Renew},
		{texts.Guard, &all.Guards.Locking},
		{texts.GuardByWriting, &all.Guards.Writing},
		{elsewhere.GuardByWriting, &all.Guards.Anywhere},
		{texts.GuardAll, &all.GuardsAll.Locking},
		{texts.GuardAllByWriting, &all.GuardsAll.Writing},
		{elsewhere.GuardAllByWriting, &all.GuardsAll.Anywhere},
		{texts.Pick, &all.Pick},
		{texts.PickRow, &all.PickRow},
		{texts.PickAny, &all.PickAny},
		{texts.RenewAll, &all.RenewAll.Statement},
		{inOneMessage(texts.RenewAll), &all.RenewAll.Message},
		{texts.HeldAll, &all.HeldAll},
		{texts.Keep, &all.Keep},
		{texts.KeepAll, &all.KeepAll.Statement},
		{inOneMessage(texts.KeepAll), &all.KeepAll.Message},
		{texts.Delete, &all.Delete},
		{texts.PickClient, &all.PickClient},
		{texts.DeleteClient, &all.DeleteClient},
		{texts.CountClient, &all.CountClient},
		{texts.PickExpired, &all.PickExpired},
		{texts.DeleteExpired, &all.DeleteExpired},
	}...)
	return all, err
}

// MessageLevel returns how an isolation is written in a message.
func MessageLevel(level sql.IsolationLevel) string { return strings.ToUpper(level.String()) }

// message returns a transaction of the isolation, in one message: one round trip, whatever the number of statements.
// It depends on nothing that is set in the session. Empty statements are left out. Without an isolation there is
// none.
func message(level string, statements ...string) string {
	if level == "" {
		return ""
	}
	return begun(level, append(statements, "COMMIT")...)
}

// begun is message for a transaction that is left open.
func begun(level string, statements ...string) string {
	if level == "" {
		return ""
	}
	text := "SET TRANSACTION ISOLATION LEVEL " + level + ";\nSTART TRANSACTION"
	for _, s := range statements {
		if s != "" {
			text += ";\n" + s
		}
	}
	return text
}
