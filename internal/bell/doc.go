// Package bell wakes processes that wait for a lock on MySQL or MariaDB when another process releases it.
//
// The server has no notifications. But a statement can take the name of a lock (GET_LOCK), and sleep, and a session
// that knows the name can end that statement (KILL QUERY):
//
//	waiter     SELECT CONCAT(GET_LOCK('own', 0), IF(GET_LOCK('name', 4), SLEEP(4.5), 0), RELEASE_ALL_LOCKS())
//	releaser   DELETE … AND IS_USED_LOCK('name') IS NULL   -- no one waits: that is all
//	           DELETE …                                    -- else, once more without the condition
//	           KILL QUERY IS_USED_LOCK('name')
//
// A name is taken for as long as that one statement lasts, and the server itself looks up who has it. So no number of
// a session passes through a client, where it could become stale. Between that look and the KILL the sleep may end by
// itself: the KILL then meets an idle session, which forgets it, or the next sleep, since these sessions send nothing
// else. That holds as long as a session of the server is one of this process: so there is no bell behind a pooler.
//
// Nothing depends on a ring: waiters poll as often as without a bell. One that comes while no statement sleeps is lost.
// So after each begin of a sleep the process polls a few times more.
//
// One session has a name at a time, so one process is woken by a release. The others wait for the name, in the order
// of arrival, if it is the only one that they want.
package bell
