// Package probe asks a database what it is and what its lock table is like, and refuses what would break a promise. It
// answers once, with all that is known: a [Question] becomes [Facts].
//
//	facts.go            the question, in order, and the dialect that follows from the answers
//	schema.go           what is read from the table itself: its columns, the server, the session, the source of tokens
//	fault.go            what is read from the catalog, and what of it is a [Fault] of the tables; most cures stand here
//	engine.go           which servers are refused: engines.tsv has them, ENGINES.md the measurements
//	cluster.go          which nodes of a cluster are refused
//	connections.go      whether the pools of the options lead to the same table
//	file.go             which file it is, for SQLite
//
// Open, doctor and verify refuse by the same functions. docs/schema.md lists the refusals for users, under "The lock
// table": a new fault belongs there, too.
package probe
