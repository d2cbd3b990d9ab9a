/* A waiter on MySQL or MariaDB, which polls, and which a release wakes. Its session takes the lock's name, sleeps, and gives the
 * name up, in one statement. The releaser deletes the row unless the name is taken, else without that condition, and
 * then ends the statement of the session that has the name. It may crash before each of these. Sleeps end by themselves, or an operator
 * ends them, or the connection ends: then its number is given to an application.
 *
 * With KILLS_BY_NUMBER the releaser asks for the number of the session, and ends its statement later. With KEEPS_THE_NAME the
 * session has the name between two sleeps, too, behind a proxy that lends it to an application meanwhile. With ONLY_IF_WOKEN the
 * waiter does not poll. With LIVE a formula is checked. */

#define LOST 1 /* the number of the session that may end */
#define NEXT 2 /* and of the one after it */

mtype = { nothing, sleep, other };

mtype statement[3] = nothing; /* of each session */
byte number = LOST; /* of the waiter's session */
byte named; /* the session that has the name, or 0 */
byte sleeps = 2; /* that the waiter's session still begins */
bool row = true;
bool gone; /* the releaser has released, or has crashed and its lease is over */
bool woken;
bool acquired;

inline wakeUp(s) {
	if
	:: s == 0 || statement[s] == nothing
	:: s != 0 && statement[s] != nothing ->
		aKillEndsASleep = (statement[s] == sleep);
		assert(aKillEndsASleep);
		end(s);
		woken = true
	fi;
	aKillEndsASleep = false
}

inline end(s) {
	statement[s] = nothing;
#ifndef KEEPS_THE_NAME
	named = 0
#endif
}

proctype Releaser() {
	bool aKillEndsASleep;
	byte to;
	if
	:: atomic { named == 0 -> row = false }
	:: named != 0 ->
		if
		:: row = false
		:: goto over /* a crash */
		fi;
		if
#ifdef KILLS_BY_NUMBER
		:: to = named; atomic { wakeUp(to) }
#else
		:: atomic { to = named; wakeUp(to) }
#endif
		:: true /* a crash */
		fi
	:: true /* a crash */
	fi;
over:
	atomic { row = false; gone = true; to = 0 } /* or the lease ends */
}

proctype Session() {
	do
	:: atomic { sleeps > 0 && statement[number] == nothing -> sleeps--; named = number; statement[number] = sleep }
	:: atomic { statement[number] == sleep -> end(number) } /* by itself */
#ifndef KEEPS_THE_NAME
	:: atomic { number == LOST && statement[LOST] == nothing -> number = NEXT } /* its connection has ended */
#endif
	:: atomic { sleeps == 0 && statement[number] == nothing -> break }
	od
}

/* An application has the number of the session that has ended or, behind a proxy, the session itself. */
proctype Application() {
#ifdef KEEPS_THE_NAME
	atomic { statement[LOST] == nothing -> statement[LOST] = other };
#else
	if
	:: atomic { number == NEXT -> statement[LOST] = other }
	:: atomic { sleeps == 0 && number == LOST -> goto none }
	fi;
#endif
	if
	:: atomic { statement[LOST] == other -> statement[LOST] = nothing }
	:: atomic { statement[LOST] != other -> skip }
	fi;
none:
	skip
}

proctype Waiter() {
#ifdef ONLY_IF_WOKEN
	atomic { woken && !row -> acquired = true }
#else
	atomic { !row && gone -> acquired = true }
#endif
}

init { atomic { run Releaser(); run Session(); run Application(); run Waiter() } }

#ifdef LIVE
ltl getsThere { <> acquired }
#endif
