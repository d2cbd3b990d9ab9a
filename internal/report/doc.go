// Package report tells the observers of a registry what its callers meet: each call that locks, and the end of its lease
// ([Call]), renewals ([Observers]), and waits that last for long ([Tracker]). It decides nothing: no caller waits, or gets a
// lock, by what is here.
package report
