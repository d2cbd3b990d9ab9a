/* One row, and processes that acquire, renew and release it. Statements may be applied late or never,
 * answers may be lost, processes may crash. */

#ifdef LIVE
#define TTL 2
#endif
#include "common.pml"

#define IDS 3 /* holders of a process at a time: in the row, in late statements, and the next one */

#define ofProcess(p, i) (1 + (p) * IDS + (i))

Row row;
Countdown lease[N]; /* of the hold: from before the statement was sent */
Countdown renewed[N]; /* the same of a renewal that has no answer yet */
bool held[N];
bool waits[N];
bool tooLate; /* the answer to the last attempt of process 0 */

mtype = { none, acquiring, renewing, deleting }
mtype late = none; /* a statement whose caller has gone on: one at a time */
byte lateHolder;

/* Whether the row, and one that the late statement may write, have no holder, and their process knows. Only these two
 * can be in its way: it need not remember others. */
bool rowIsLeft, lateIsLeft;

#ifdef LIVE
byte rounds = 1; /* of the contenders; then they leave the lock alone */
byte faults = 2;
byte renewals = 1;
#define mayCrash(p) (p != 0)
#define mayFail (faults > 0)
#define fail() faults--
#define mayRenew (renewals > 0)
#define noteRenewal() renewals--
#else
#define mayCrash(p) true
#define mayFail true
#define fail() skip
#define mayRenew true
#define noteRenewal() skip
#endif

inline apply(kind, h, got) {
	if
	:: kind == acquiring -> Acquire(row, h, got); rowIsLeft = rowIsLeft && !got
	:: kind == renewing -> Renew(row, h, got)
	:: kind == deleting -> Delete(row, h, got); rowIsLeft = rowIsLeft && row.holder != 0
	fi
}

/* A statement without an answer: it was applied, or will be, or is lost. */
inline unanswered(kind, h) {
	if
	:: apply(kind, h, got)
	:: late == none -> late = kind; lateHolder = h
	:: true
	fi;
	fail();
	got = false
}

#define owns(p, h) ((h) >= ofProcess(p, 0) && (h) < ofProcess(p, IDS))

#define isLeftover(p) (rowIsLeft && owns(p, row.holder))

inline deleteLeftover() { row.holder = 0; row.left = 0; rowIsLeft = false }

inline leave(h) {
	rowIsLeft = rowIsLeft || row.holder == h;
	lateIsLeft = lateIsLeft || lateHolder == h
}

#ifdef FORGETS_LEFTOVERS
#define metLeftover(p) false
#else
#define metLeftover(p) isLeftover(p)
#endif

/* Each acquisition has a holder that is in use nowhere. An old one is used again only when nothing
 * has it any more, which is as good as a new one. */
#define isUnused(x) (row.holder != (x) && lateHolder != (x))

inline NewHolder(p, h) {
	i = 0;
	do
	:: isUnused(ofProcess(p, i)) -> break
	:: else -> i++; assert(i < IDS)
	od;
	h = ofProcess(p, i);
	i = 0
}

#ifdef REUSES_HOLDER
#define forget(h) skip
#else
#define forget(h) h = 0
#endif

inline crash(p) {
	held[p] = false; waits[p] = false; stop(lease[p]); stop(renewed[p]);
	rowIsLeft = rowIsLeft && !owns(p, row.holder);
	lateIsLeft = lateIsLeft && !owns(p, lateHolder);
	h = 0; got = false
}

proctype Process(byte p) {
	byte h, i;
	bool got, noOwnRowInTheWay;
end:
	if
#ifdef LIVE
	:: d_step { p == 0 -> waits[p] = true }
	:: d_step { p != 0 && rounds > 0 -> rounds--; waits[p] = true }
#else
	:: waits[p] = true
#endif
	fi;
again:
	atomic {
#ifdef REUSES_HOLDER
		if
		:: h == 0 -> NewHolder(p, h)
		:: else
		fi;
#else
		NewHolder(p, h);
#endif
		start(lease[p]);
		tooLate = tooLate && p != 0
	}
Try:
	if
#ifdef READS_THEN_WRITES
	:: isFree(row) -> d_step { row.holder = h; row.left = TTL; rowIsLeft = false; got = true }
	:: !isFree(row) -> skip
#else
	:: d_step { true -> apply(acquiring, h, got) }
#endif
	:: atomic { mayFail -> unanswered(acquiring, h); goto CleanUp }
	:: atomic { mayFail && mayCrash(p) -> unanswered(acquiring, h); crash(p); goto end }
	fi;
	/* The answer may take long. */
	if
	:: atomic { mayFail -> fail(); goto CleanUp }
	:: atomic { !got && metLeftover(p) -> stop(lease[p]); forget(h); goto Discard } /* whoever meets one deletes it, and tries again */
	:: atomic { !got && !metLeftover(p) ->
		stop(lease[p]);
		noOwnRowInTheWay = !isLeftover(p) || row.left == 0;
		assert(noOwnRowInTheWay);
		noOwnRowInTheWay = false;
		forget(h);
		goto Poll }
#ifdef COUNTS_FROM_ANSWER
	:: atomic { got -> start(lease[p]); waits[p] = false; believe(p) }
#else
	:: atomic { got && lease[p].left == 0 -> tooLate = (p == 0); waits[p] = (p == 0); goto CleanUp }
	:: atomic { got && lease[p].left > 0 -> waits[p] = false; believe(p) }
#endif
	fi;
holds:
	if
	:: atomic { lease[p].left > 0 && mayRenew -> noteRenewal(); start(renewed[p]) }
	:: atomic { lease[p].left == 0 -> held[p] = false; goto ended }
	:: atomic { held[p] = false; stop(lease[p]); goto Unlock }
	:: atomic { mayFail && mayCrash(p) -> fail(); crash(p); goto end }
	fi;
SendRenewal:
	if
	:: d_step { true -> Renew(row, h, got) }
	:: atomic { mayFail -> unanswered(renewing, h); stop(renewed[p]); goto holds }
	fi;
	if
	:: atomic { mayFail -> fail(); stop(renewed[p]); got = false; goto holds }
	:: atomic { !got -> held[p] = false; goto ended }
	:: atomic { got && lease[p].left == 0 -> held[p] = false; goto CleanUp } /* too late: the row has no holder */
	:: atomic { got && lease[p].left > 0 ->
		lease[p].left = renewed[p].left; lease[p].missed = renewed[p].missed;
		stop(renewed[p]); got = false; goto holds }
	fi;
Unlock:
	if
	:: d_step { true -> apply(deleting, h, got) }
	:: atomic { mayFail -> unanswered(deleting, h); leave(h) }
	fi;
	goto ended;
CleanUp:
	if
	:: d_step { true -> apply(deleting, h, got) }
	:: atomic { mayFail -> unanswered(deleting, h) }
	fi;
	d_step {
		if
		:: !got -> leave(h) /* the statement that writes it may be late */
		:: else
		fi;
		stop(lease[p]); stop(renewed[p]);
		forget(h);
		got = false
	}
	if
	:: waits[p] -> goto again
	:: !waits[p] -> goto end
	fi;
Discard:
	if
	:: d_step { metLeftover(p) -> deleteLeftover() }
	:: !metLeftover(p)
	:: atomic { mayFail -> fail() }
	fi;
	goto again;
Poll:
	if
	:: isFree(row) || metLeftover(p) -> goto again
	:: atomic { mayFail && mayCrash(p) -> fail(); crash(p); goto end }
	fi;
ended:
	skip;
	d_step { h = 0; got = false; stop(lease[p]); stop(renewed[p]) }
	goto end
}

inline settle() { late = none; lateHolder = 0; lateIsLeft = false }

/* A late statement is applied at any time, or never, in any order. A sweep deletes what was left. */
proctype Network() {
	bool got;
end:
	do
#ifndef LIVE
	:: d_step { isLeftover(0) || isLeftover(1) -> deleteLeftover() }
#endif
	:: atomic { late != none ->
		apply(late, lateHolder, got);
		rowIsLeft = rowIsLeft || late == acquiring && got && lateIsLeft;
		got = false;
		settle() }
	:: atomic { late != none -> settle() }
	od
}

#define counts(p) (lease[p].left > 0 || renewed[p].left > 0)

proctype Clock() {
	byte p;
end:
	do
	:: atomic { row.left > 0 || counts(0) || counts(1) ->
		tickRow(row);
		p = 0;
		do
		:: p < N -> tick(lease[p]); tick(renewed[p]); p++
		:: else -> break
		od;
		p = 0 }
	od
}

init {
	atomic {
		run Clock(); run Network();
		run Process(0); run Process(1)
	}
}

#ifdef LIVE
/* Once the contenders have left the lock alone, process 0 gets it, whatever they have left behind, unless the answers
 * to its attempts are always too late. */
ltl getsThere { ([] <> tooLate) || [] (waits[0] -> <> held[0]) }
#endif
