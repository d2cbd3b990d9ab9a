/* Two readers and a writer. A reader writes its row, a seat, and then reads the writer's; a writer writes its row, and then
 * reads the seats. Leases guard transactions, whose COMMIT comes late. Processes crash. With LIVE there is
 * no time and no failure, and callers wait in turn. */

#define N 3
#define WRITER 2
#include "common.pml"

#define holderOf(p) (p + 1)

Row row; /* the writer's */
Row seat[WRITER];
bool inside[WRITER]; /* the readers that the writer waits for */
Countdown lease[N];
bool held[N];
bool pinned[N]; /* by a transaction that the lease has guarded, and that may outlast it */
chan turn = [N] of { byte }; /* who waits in turn; the first one has it */

#define hasTurn(p) turn ? [eval(p)]
#define leaveTurn(p) turn ? eval(p)

#ifdef LIVE
#define mayFail false
#else
#define mayFail true
#endif

/* A writer is in alone. */
inline enter(p) {
	bool writerIsAlone;
	held[p] = true;
	writerIsAlone = p == WRITER && !believes(0) && !believes(1) && !pinned[0] && !pinned[1] || p != WRITER && !believes(WRITER) && !pinned[WRITER];
	assert(writerIsAlone);
	writerIsAlone = false
}

/* A row whose lease has ended may be pinned by a transaction: only a statement that writes the row finds that out. */
inline TakeOver(r, owner, got) {
	if
#ifndef BELIEVES_EXPIRED_ROWS
	:: isFree(r) && r.holder != 0 && pinned[owner] -> got = false
#endif
	:: isFree(r) && !pinned[owner] -> r.holder = 0; got = true
#ifdef BELIEVES_EXPIRED_ROWS
	:: isFree(r) && pinned[owner] -> got = true
#endif
	:: else -> got = false
	fi
}

proctype Reader(byte p) {
	bool got, inTurn;
end:
again:
#ifdef READER_LOOKS_FIRST
	atomic { isFree(row) && !pinned[WRITER] };
#endif
TakeSeat:
	atomic { start(lease[p]);
		if
		:: pinned[p] -> got = false
		:: !pinned[p] -> Acquire(seat[p], holderOf(p), got); inside[p] = inside[p] && !got
		fi }
	if
	:: atomic { got && lease[p].left > 0 -> got = false }
	:: atomic { !got || lease[p].left == 0 -> goto GiveWay }
	fi;
#ifndef READER_LOOKS_FIRST
CheckNoWriter:
	atomic {
		if
		:: row.holder == 0 -> got = true
		:: row.holder != 0 && row.left > 0 -> got = false
		:: row.holder != 0 && row.left == 0 -> TakeOver(row, WRITER, got)
		fi }
	if
	:: !got -> goto GiveWay
	:: got
	fi;
#endif
	if
	:: atomic { lease[p].left > 0 -> got = false; enter(p) }
	:: atomic { lease[p].left == 0 -> goto GiveWay }
	fi;
	if
	:: atomic { inTurn -> inTurn = false; leaveTurn(p) }
	:: !inTurn
	fi;
reads:
	if
	:: atomic { lease[p].left == 0 -> held[p] = false }
	:: held[p] = false
	:: atomic { mayFail && believes(p) && !pinned[p] && isHeldBy(seat[p], holderOf(p)) -> pinned[p] = true; goto reads }
	:: atomic { mayFail -> held[p] = false; stop(lease[p]); goto end } /* crash */
	fi;
LeaveSeat:
	atomic {
		if
		:: !pinned[p] -> Delete(seat[p], holderOf(p), got)
		:: pinned[p]
		fi;
		got = false; stop(lease[p]) }
	goto end;
GiveWay:
	atomic {
		if
		:: !pinned[p] -> Delete(seat[p], holderOf(p), got)
		:: pinned[p]
		fi;
		got = false; stop(lease[p]) }
#ifdef LIVE
	if
	:: p == 1 -> goto end /* a caller that tries once, again and again */
	:: p != 1
	fi;
	if
	:: atomic { !inTurn -> turn ! p; inTurn = true }
	:: inTurn
	fi;
	hasTurn(p);
	isFree(row); /* in turn a reader writes nothing while there is a writer */
#endif
	goto again
}

inline ReadSeats(first) {
	inside[0] = seat[0].holder != 0 && seat[0].left > 0 && (first || inside[0]);
	inside[1] = seat[1].holder != 0 && seat[1].left > 0 && (first || inside[1])
}

proctype Writer() {
	bool got, inTurn;
end:
again:
#ifdef LIVE
	if
#ifdef IGNORES_TURN
	:: true
#else
	:: empty(turn) || inTurn
	:: atomic { nempty(turn) && !inTurn -> turn ! WRITER; inTurn = true }; hasTurn(WRITER)
#endif
	fi;
#endif
#ifdef WRITER_LOOKS_FIRST
	atomic { ReadSeats(true) }
#endif
WriteRow:
	atomic { start(lease[WRITER]);
		if
		:: pinned[WRITER] -> got = false
		:: !pinned[WRITER] -> Acquire(row, holderOf(WRITER), got)
		fi }
	if
	:: atomic { got && lease[WRITER].left > 0 -> got = false }
	:: atomic { !got || lease[WRITER].left == 0 -> goto Unlock }
	fi;
#ifndef WRITER_LOOKS_FIRST
	d_step { ReadSeats(true) }
#endif
Drain:
#ifdef DOES_NOT_WAIT
	goto Admit;
#endif
	if
	:: atomic { !inside[0] && !inside[1] -> got = true;
		if
		:: seat[0].holder != 0 && seat[0].left == 0 -> TakeOver(seat[0], 0, got)
		:: else
		fi;
		if
		:: got && seat[1].holder != 0 && seat[1].left == 0 -> TakeOver(seat[1], 1, got)
		:: else
		fi;
		if
		:: got -> goto Admit
		:: else
		fi }
	:: atomic { (inside[0] || inside[1]) && lease[WRITER].left > 0 -> skip }
	:: atomic { lease[WRITER].left == 0 -> goto Unlock }
	fi;
#ifdef WAITS_FOR_LATER_READERS
	d_step { ReadSeats(true) }
#else
	d_step { ReadSeats(false) }
#endif
	goto Drain;
Admit:
	if
	:: atomic { lease[WRITER].left > 0 -> got = false; enter(WRITER) }
	:: atomic { lease[WRITER].left == 0 -> goto Unlock }
	fi;
writes:
	if
	:: atomic { lease[WRITER].left == 0 -> held[WRITER] = false }
	:: held[WRITER] = false
	:: atomic { mayFail && believes(WRITER) && !pinned[WRITER] && isHeldBy(row, holderOf(WRITER)) -> pinned[WRITER] = true; goto writes }
	:: atomic { mayFail -> held[WRITER] = false; stop(lease[WRITER]); goto end } /* crash */
	fi;
Unlock:
	atomic {
		if
		:: !pinned[WRITER] -> Delete(row, holderOf(WRITER), got)
		:: pinned[WRITER]
		fi;
		got = false; stop(lease[WRITER]); inside[0] = false; inside[1] = false;
		if
		:: inTurn -> inTurn = false; leaveTurn(WRITER)
		:: else
		fi }
	goto end
}

/* A guarded transaction ends at any time. */
proctype Transactions() {
end:
	do
	:: atomic { pinned[0] -> pinned[0] = false }
	:: atomic { pinned[1] -> pinned[1] = false }
	:: atomic { pinned[WRITER] -> pinned[WRITER] = false }
	od
}

proctype Clock() {
	byte p;
end:
	do
	:: atomic { row.left > 0 || seat[0].left > 0 || seat[1].left > 0 || lease[0].left > 0 || lease[1].left > 0 || lease[2].left > 0 ->
		tickRow(row); tickRow(seat[0]); tickRow(seat[1]);
		p = 0;
		do
		:: p < N -> tick(lease[p]); p++
		:: else -> break
		od;
		p = 0 }
	od
}

init {
	atomic {
#ifndef LIVE
		run Clock(); run Transactions();
#endif
		run Reader(0); run Reader(1); run Writer()
	}
}

#ifdef LIVE
ltl readerGetsIn { [] (Reader[1]@GiveWay -> <> held[0]) }
ltl writerGetsIn { [] (Writer@Drain -> <> held[WRITER]) }
#endif
