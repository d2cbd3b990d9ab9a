package locktable

import (
	"strings"

	"github.com/sqllock/sqllock/dialect"
)

// statements are the compiled texts of one dialect, layout and table.
type statements struct {
	acquire, acquireAll, acquireRow, draw, drawOne, trim, peek, peekAll, list, held, renew, guard, guardByWriting, guardAnywhere, pick, renewAll, heldAll, keep statement
	release, releaseAll, pickClient, deleteClient, countClient, pickExpired, deleteExpired                                                                      statement
	cluster, clusterVariables                                                                                                                                   string
}

// constant returns the frequent texts that are the same for each execution.
func (s statements) constant() (texts []string) {
	for _, one := range []statement{
		s.acquire, s.acquireAll, s.draw, s.drawOne, s.peek, s.peekAll, s.held, s.heldAll,
		s.renew, s.renewAll, s.pick, s.keep, s.release, s.releaseAll,
	} {
		if !one.expands && !strings.Contains(one.text, "{rows}") {
			texts = append(texts, one.text)
		}
	}
	return texts
}

func compileAll(d dialect.Dialect, layout dialect.Layout, names dialect.Names, region string) (statements, error) {
	texts := d.Statements(layout, names)
	acquireAll := texts.AcquireAll
	if texts.AcquireRow != "" { // bindRows fills it in
		acquireAll = strings.Replace(acquireAll, ":rows", "{rows}", 1)
	}
	all := statements{cluster: texts.Cluster, clusterVariables: texts.ClusterVariables}
	for _, each := range []struct {
		text string
		into *statement
	}{
		{texts.Acquire, &all.acquire},
		{acquireAll, &all.acquireAll},
		{texts.AcquireRow, &all.acquireRow},
		{texts.PeekAll, &all.peekAll},
		{texts.DrawOne, &all.drawOne},
		{texts.DeleteAll, &all.releaseAll},
		{texts.Draw, &all.draw},
		{texts.Trim, &all.trim},
		{texts.Peek, &all.peek},
		{texts.List, &all.list},
		{texts.Held, &all.held},
		{texts.Renew, &all.renew},
		{texts.Guard, &all.guard},
		{texts.GuardByWriting, &all.guardByWriting},
		{texts.Pick, &all.pick},
		{texts.RenewAll, &all.renewAll},
		{texts.HeldAll, &all.heldAll},
		{texts.Keep, &all.keep},
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
