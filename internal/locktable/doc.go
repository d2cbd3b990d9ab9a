// Package locktable reads and writes the lock table; the root package sends no SQL. It knows
// rows and claims, but no lease, no registry and no key as the user wrote it.
//
// A row belongs to the CLIENT_ID that stands in it, here called the holder, until it expires by
// the clock of the database. Each acquisition has a holder of its own, so a late statement of
// one never touches the row of another. Durations cross the border, instants never do.
//
// # The way to the database
//
// An attempt to acquire goes through these functions:
//
//	Table.Acquire         deletes leftover rows first; applies the policy by a retry: lost
//	                      races, pinned rows; handles an unknown outcome at the end
//	batched.do            joins a batch, or sends the statement alone
//	batch.Batcher.Do      waits until the batch in flight is done
//	acquireOne            for one row, or acquireMany
//	write                 opens the transaction, unless the table is in Autocommit; or an
//	                      acquirer, or one message, is the transaction
//	oneRow.run            or manyRows.run: the statements
//
// A release takes the same way, to releaseOne or releaseMany. The other verbs are not batched:
// callAlone, which applies the policy with a limit to each answer, runs the function that sends the
// statement. Every statement is sent in a loop over connections, [transaction.Try], which passes over
// those that are closed.
//
// # Acquire
//
// To acquire is to run one statement on the primary key: insert the row, or take it over if it
// has expired or carries this very holder. The statement must read nothing but its row.
// Under SERIALIZABLE every other read causes serialization failures on PostgreSQL and deadlocks
// on InnoDB, even between different keys; docs/design.md has the measurements.
//
// On PostgreSQL and SQLite the statement returns a row exactly if the lock was acquired. On MariaDB,
// where tokens come from a sequence, it returns the row in any case, with its holder. On MySQL, and on
// a MariaDB with a table of numbers, the owner is read afterwards, by primary key, in the same transaction.
// In Autocommit it is the next statement: no contender can take an unexpired row in between.
// There, and before a renewal, a statement of its own ([dialect.Dialect.Outside]) makes sure that the
// application has left no transaction open on the connection; with a sequence the acquisition says so.
// Counts of affected rows are not used for that, because they depend on the driver's
// clientFoundRows and differ between servers.
//
// A node of Galera that fails certification repeats a statement that is a transaction of its own
// (wsrep_retry_autocommit), and answers with the rows of both runs. So on Galera the owner is read
// afterwards, with tokens or without. Where the server has not said what it is, the last row counts.
//
// The options can save the round trips of BEGIN and COMMIT, and keep the transaction
// serializable:
//
//   - The acquirers are sessions that are SERIALIZABLE, so that one statement in autocommit is a
//     serializable transaction. The statement returns the isolation in which it ran. If it is
//     another one, because the session was reset or a pooler lost the setting, the row is
//     acquired once more in an explicit transaction, or in a message, and so are all others for a
//     minute. On PostgreSQL they are a second pool, and only acquisitions are sent there: releases and
//     reads, which read more, would cause serialization failures. On MariaDB with a sequence they are
//     the table's own pool: InnoDB locks nothing for a SELECT that is a transaction of its own.
//   - On MySQL and MariaDB the transaction is one message of several statements, from SET
//     TRANSACTION to COMMIT. It depends on no setting of the session. The outcome is the
//     result of a SELECT before the COMMIT, whose answer is waited for.
//
// A refused attempt locks the row until its transaction ends and costs a commit. Then it reads
// the row that is in the way, by a statement of its own. So waiters poll with [Table.Read],
// which writes and locks nothing.
//
// # Release
//
// To release is to delete the row by region, key and holder. On PostgreSQL this transaction has
// synchronous_commit off: it waits neither for the disk nor for a replica, and a crash of the
// server may bring back a row that was released just before. It cannot bring back one that has
// been acquired since, because the log is written in order.
//
// # Lost races
//
// Two callers of one key can give each other a serialization failure: 40001 and 40P01; 1213,
// 1020, and 1180 or 3101 at COMMIT (Group Replication); SQLITE_BUSY and SQLITE_LOCKED. All mean that
// the statement was not applied. It is sent again after a random pause of up to 1, 2, 4 …
// 64 ms. An acquisition counts as not acquired after ten of these.
//
// # Pinned rows
//
// A row is pinned while another transaction has it locked: a guarded one (see [Table.Guard])
// for as long as it is open, or an attempt to acquire, for a moment. A statement that waits
// for the row keeps a connection, so its wait is limited:
//
//   - On PostgreSQL set_config('lock_timeout', …, true) stands in the FROM or USING clause.
//     It is evaluated before the row is locked, ends with the transaction, needs no round trip
//     and works behind PgBouncer. The limit is 250 ms; for a renewal it is a second, since a
//     statement that gives up loses its place in the row's queue.
//   - On MariaDB it is SET STATEMENT innodb_lock_wait_timeout=1, in a comment that only
//     MariaDB reads.
//   - Oracle's MySQL has no limit for a statement; its hint SET_VAR refuses this variable. The
//     session's counts: put innodb_lock_wait_timeout=1 into the DSN. Each attempt reads the row
//     first there, so that it waits only for a row that looks free.
//   - On SQLite there is one writer at a time, and the driver's busy_timeout limits the wait.
//
// Statements about many rows wait for none of them: they use SKIP LOCKED. MySQL's UPDATE and
// DELETE cannot, so there a SELECT picks the rows first, in the same transaction. With MultiStatements both are
// one message: the SELECT counts the rows into a variable of the session, and the other statement changes
// nothing unless all were counted. If they were not, the transaction of two statements follows.
//
// # How long a statement may take
//
// These are the policies of call.go. "Answer" limits one answer; a driver that does not return
// then is left behind, because lib/pq waits for a silent server until TCP gives up.
//
//	verb                       lost races     row pinned           answer
//	Acquire                    10 times       not acquired         the batch's, see below
//	Release                    until ctx ends 3 s                  the batch's
//	Renew                      until ctx ends as the caller says   10 s, or TTL if longer
//	RenewUnpinned          until ctx ends an error at once     as Renew; 100 ms on SQLite
//	Keep                       until ctx ends 1 s                  10 s, or TTL if longer
//	Read, ReadFirst            until ctx ends an error after 1 s   5 s, then another one, as IsHeld in all
//	IsHeld                     until ctx ends an error after 1 s   10 s, or TTL if longer
//	Poll                       until ctx ends an error after 1 s   1 s if with others, see below, then as Read
//	RenewAll                   until ctx ends skipped              the caller bounds it
//	List                       until ctx ends an error after 1 s   until ctx ends
//	DeleteExpired              until ctx ends 1 s                  until ctx ends
//	DeleteClient               until ctx ends again for 1 s        until ctx ends
//	Guard                      an error       an error             until ctx ends
//	Open                       until ctx ends 1 s                  10 s
//
// # Batches
//
// The type batched is where a verb for one row becomes a verb for many. A call that arrives
// alone is sent at once. Calls that arrive while a batch is in flight make the next one: up to
// 256 rows, one row a key, in the order of their keys, so that processes cannot deadlock.
// Acquisitions and releases are batched apart, because a release reads. So a busy process needs
// two connections, however many callers it has.
//
//   - A batch belongs to no caller. It has 5 s. A caller whose ctx ends leaves at once, and
//     what was acquired for it is deleted.
//   - After an answer of the server that need not be about every row (a constraint, a policy, a
//     trigger), each caller's statement is sent alone, four at a time. So it is after a pinned row, whose key is then sent alone for 5 s. A
//     statement sent alone has 10 s, or its time-to-live if that is longer.
//   - A batch that takes longer than 100 ms does not delay those behind it: another one is
//     begun, up to four.
//   - On MySQL a statement waits for a pinned row as long as the session says. So a batch reads
//     the rows first and acquires keys that have none; expired rows are taken over alone. Its
//     statements name the primary key (FORCE INDEX): the server would scan a small table and
//     lock each row that it scans. A pinned row of another key then delayed all for 50 s.
//
// # Joint claims
//
// A claim may be one of several rows. Its acquisition is the statement of a batch, in a transaction of
// its own that is rolled back unless it gets all of them. It is not batched with others, because these
// would be rolled back too. In READ COMMITTED another acquisition may come between two of its rows,
// so it counts what it got and does not look before. It always is an explicit transaction, also in
// Autocommit and where there are acquirers.
//
// MySQL and MariaDB read the rows before, because the statement would wait for one that is being renewed. With
// MultiStatements a message then begins the transaction and acquires the rows, and COMMIT or ROLLBACK ends it.
// Rows that have expired take an explicit transaction, which picks them first: they may be pinned.
//
// # Polls of many rows
//
// One statement answers all waiters that are due. After it there is a pause of 24 times what
// statements have cost, so that polls take no more than a few per cent of a processor of the
// server. The pause is 25 ms at least, and IdleBetweenTries at most, which a statement of
// more than 4 ms exceeds. A waiter that is due alone reads its row by itself.
//
// A statement that has failed, or has had no answer for a second, is sent once more, at once: its
// connection may be dead, and each waiter's own statement would cost more. After a second failure each
// reads its row by itself, four at a time, since the error need not be theirs. On PostgreSQL from 128 keys on the statement looks each
// row of the table up in a hash table of the keys; fewer are looked up by the primary key.
//
// # Turns
//
// A fair caller queues for its turn before it acquires: in a session of its own, by a lock of the server's, which grants it in the
// order of arrival. The one that has the turn alone polls the row, acquires it by the statement that all use, and gives the
// turn up; then the statement of the next one returns. A first attempt looks whether the turn is free. The row alone
// says who holds: a caller that cannot get a turn loses its place in the order, and nothing else. See turn.go, and package dialect for the texts.
//
// # Renewals of many rows
//
// RenewAll renews up to 10 000 rows by one statement. PostgreSQL and SQLite take the keys and
// holders as JSON, so that one text serves any number. On MySQL they are placeholders, because
// the collation of a JSON table would clash with the column's. If the server refuses one of the rows, the
// statement is sent for halves of them. Rows that were not renewed are
// read once more: a row that is gone is [Lost], one that is there is [Pinned]. The caller then
// renews such a row by [Table.Renew], which waits in the row's queue: where many processes try,
// a statement that skips locked rows may find it locked each time.
//
// # Fencing tokens
//
// The acquire statement draws the token while it has the row, so the tokens of one key are in
// the order of its holders. PostgreSQL uses nextval in RETURNING, at no cost; the sequence's
// values are in the log before the row's commit is, so they survive what the row survives.
//
// MariaDB does the same with NEXTVAL, if what it draws from is a sequence; Open looks. The sequence
// has no cache. So each number is in InnoDB's log before the row's commit, and in the binary log
// in the row's own transaction, before the row. A sequence with a cache writes a block of numbers
// down with the first of them, and another transaction may be replicated before that one. On Galera
// there is a table: each node would count by itself. Open refuses a sequence with a cache, and one
// on Galera.
//
// MySQL and SQLite insert into a table that numbers its rows, and only if the row is the
// claim's. On MySQL that also answers who owns the row, without a further round trip. In
// Autocommit the draw follows the acquisition; an answer that comes after the lease's end
// gives none, so the draw comes while the row is held. A batch draws one number for all its
// keys. Each 1024th draw of a process deletes old numbers, in the background. A token is the
// number times 65 536, which leaves room for callers that hand the row over without the
// database. A number of 2^47 or more gives no token and is an error.
//
// # Statements sent twice
//
// A restart closes all connections of a pool. lib/pq and go-sql-driver have database/sql pass over them;
// pgx does not look for a second after their last use, and returns what the server has said, as 57P01. So
// all statements are sent by a [transaction.Try], again on another connection if theirs was closed
// (dialect.Closed), after the first twenty with a pause before each. An error of a new connection is returned. All statements can be repeated: they
// name the holder, and an acquisition recognises its own row. Within an explicit transaction it is only
// BEGIN. If an acquisition was sent again, and has failed or was refused, an earlier one may still come: it
// is cleaned up, and its holder not used again.
//
// A release or Keep that finds no row proves a loss only if it was sent once. A batch whose answer was
// lost is sent again row by row. A Try notices when a statement was sent twice. Then a release counts
// as done, and Keep reads the row.
//
// # Unknown outcomes and leftover rows
//
// If the answer to a COMMIT is lost, or ctx ends before it comes, the row may or may not be
// there. It has no holder, yet it would keep all contenders out. So [Table.CleanUp]
//
//  1. deletes the row at once by its holder, whatever has become of ctx, within a second or
//     the time-to-live if that is shorter. A caller whose ctx has ended waits for that for 100 ms,
//     and then leaves it as if it had failed;
//  2. if that fails, or finds no row (the statement that writes it may still be on its way),
//     remembers the claim as a leftover and deletes it before this client's next acquisition of
//     the key. It forgets the claim after its time-to-live; after a minute if no row was found,
//     the longest that a server lets a statement wait by default; and if 65 536 keys came after.
//
// The next acquisition has another holder, because the deletion may still be on its way. A
// definite answer leaves the holder usable. A race that was lost after the row was written is
// not definite: see [OutcomeUnknown]. A statement that comes even later than the second
// deletion, or than the minute, leaves a row until it expires, as after a crash.
//
// # Guard
//
// Guard pins the row in the user's transaction, by a locking SELECT with holder and expiry. On
// SQLite it is an UPDATE that changes nothing and begins the one write transaction. The caller
// checks its deadline afterwards. The row expires later, so a lease that is not over then was
// valid when the row was pinned, however long the statement waited.
//
// That is not enough where several nodes write: Galera and Group Replication certify at COMMIT
// what a transaction has changed, and do not know of its locks. There Guard updates CREATED_DATE.
// An unchanged row would not be certified, so the step is the smallest that the column keeps,
// 1 µs to 1 ms. EXPIRED_AFTER, CLIENT_ID and the token stay as they are. In the four-column
// layout the row lasts longer by that step, until its next renewal; it never lasts shorter.
//
// # Clusters
//
// Open asks MySQL and MariaDB by one statement what cluster they belong to (see [Cluster]). A
// variable that cannot be read is not known, and no error. Open fails on a server that says that
// it is no working member, and where SERIALIZABLE would be refused.
//
// Guard writes as soon as the server has said that it certifies, for as long as the table lives.
// Otherwise it asks again, in its own transaction, if the last answer is older than a minute or
// there was none: a server may be restarted as a node while the table is in use, and the
// transaction may be on another server.
//
// If Open has read that the server is ONLINE in a replication group, that becomes a condition of
// the statements that acquire, renew, keep and guard. A member that is restarted outside of its
// group then acquires, keeps and guards nothing, on whichever connection; it still deletes what is
// released. That costs no round trip. On Galera the condition is the cluster's UUID: a node without a quorum
// refuses all statements about tables by itself, but one that is started outside of its cluster does not.
//
// Servers that certify read what they have applied, which may be less than was committed. See cluster.go
// for the answers that count only from one that has caught up: [Table.ReadAll], [Table.ReadNow],
// [Table.IsHeld], and that a row to be renewed, kept or released is not there.
//
// # The four-column layout
//
// Spring before 7 has no EXPIRED_AFTER: a row expires when CREATED_DATE is older than the
// reader's time-to-live. So TTL matters in every claim there, also in one that only reads.
// Renew and Keep move CREATED_DATE.
package locktable
