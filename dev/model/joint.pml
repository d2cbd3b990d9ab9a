/* Two processes that want two rows by one claim, and a third that wants one of them. One transaction acquires both
 * rows, or is rolled back. An operator deletes a row once. */

#define N 3
#define TTL 2 /* row.pml has the margin */
/* A process that an operator has robbed believes wrongly until it renews. */
#define believes(p) (held[p] && lease[p].left > 0 && !robbed[p])
#include "common.pml"

#define nobody 255
#define holderOf(p) (p + 1)

Row row[2];
Row before[2]; /* the row as it is committed, while a transaction changes it */
byte lockedBy[2] = nobody; /* whose transaction has the row locked */
Countdown lease[N];
Countdown renewed[N];
bool held[N];
bool robbed[N];

/* Acquire one of the rows, which others then wait for until the transaction ends. */
inline LockRow(i) {
	atomic { lockedBy[i] == nobody ->
		lockedBy[i] = p;
		before[i].holder = row[i].holder; before[i].left = row[i].left;
		Acquire(row[i], holderOf(p), gotIt);
		got = got && gotIt;
		some = some || gotIt;
		gotIt = false }
}

inline endRow(i, commit) {
	if
	:: lockedBy[i] == p ->
		if
		:: commit
		:: else -> row[i].holder = before[i].holder; row[i].left = before[i].left
		fi;
		before[i].holder = 0; before[i].left = 0; lockedBy[i] = nobody
	:: else
	fi
}

inline deleteRow(i) {
	if
	:: row[i].holder == holderOf(p) -> row[i].holder = 0; row[i].left = 0
	:: else
	fi
}

/* RenewRow waits for a row that is pinned, as the statement for this row alone does. */
inline RenewRow(i) {
	atomic { lockedBy[i] == nobody ->
		Renew(row[i], holderOf(p), gotIt);
		got = got && gotIt; some = some || gotIt; gotIt = false }
}

proctype Process(byte p) {
	bool got, some, gotIt, nothingIsLeft, lossIsNoticed;
end:
	atomic { lease[p].left == 0 -> start(lease[p]); got = true; some = false }
	if
#ifdef ANY_ORDER
	:: p == 1 -> LockRow(1); LockRow(0)
	:: p == 0 -> LockRow(0); LockRow(1)
#else
	:: p != 2 -> LockRow(0); LockRow(1)
#endif
	:: p == 2 -> LockRow(1)
	fi;
EndTransaction:
	atomic {
#ifdef SOME_ROWS_ARE_ENOUGH
		got = some;
#endif
#ifdef KEEPS_SOME_ROWS
		endRow(0, true); endRow(1, true);
#else
		endRow(0, got); endRow(1, got);
#endif
		nothingIsLeft = got || (row[0].holder != holderOf(p) && row[1].holder != holderOf(p));
		assert(nothingIsLeft);
		nothingIsLeft = false; some = false
	}
	if
	:: atomic { !got || lease[p].left == 0 -> goto Unlock }
	:: atomic { got && lease[p].left > 0 -> got = false; believe(p) }
	fi;
holds:
	if
	:: atomic { lease[p].left > 0 -> start(renewed[p]); got = true; lossIsNoticed = !robbed[p] }
	:: held[p] = false -> goto Unlock
	fi;
	if
	:: p != 2 -> RenewRow(0); RenewRow(1)
	:: p == 2 -> RenewRow(1)
	fi;
#ifdef SOME_RENEWALS_ARE_ENOUGH
	got = some;
#endif
	if
	:: atomic { got && lease[p].left > 0 ->
		assert(lossIsNoticed);
		lease[p].left = renewed[p].left; lease[p].missed = renewed[p].missed;
		stop(renewed[p]); got = false; some = false; lossIsNoticed = false; goto holds }
	:: atomic { !got || lease[p].left == 0 -> held[p] = false; lossIsNoticed = false }
	fi;
Unlock:
	atomic { lockedBy[0] == nobody && lockedBy[1] == nobody ->
		deleteRow(0); deleteRow(1);
		stop(lease[p]); stop(renewed[p]); robbed[p] = false; got = false; some = false };
	goto end
}

proctype Operator() {
end:
	if
	:: atomic { lockedBy[0] == nobody && row[0].holder != 0 -> robbed[row[0].holder - 1] = true; row[0].holder = 0; row[0].left = 0 }
	:: atomic { lockedBy[1] == nobody && row[1].holder != 0 -> robbed[row[1].holder - 1] = true; row[1].holder = 0; row[1].left = 0 }
	fi
}

#define counts(p) (lease[p].left > 0 || renewed[p].left > 0)

proctype Clock() {
	byte p;
end:
	do
	:: atomic { row[0].left > 0 || row[1].left > 0 || counts(0) || counts(1) || counts(2) ->
		tickRow(row[0]); tickRow(row[1]); tickRow(before[0]); tickRow(before[1]);
		p = 0;
		do
		:: p < N -> tick(lease[p]); tick(renewed[p]); p++
		:: else -> break
		od;
		p = 0 }
	od
}

init { atomic { run Clock(); run Operator(); run Process(0); run Process(1); run Process(2) } }
