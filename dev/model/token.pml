/* Fencing tokens. An acquisition draws a number, and a holder hands its row to the next caller of its
 * process with the token that follows. Processes wait for a row that another transaction changes. With AUTOCOMMIT
 * the number is drawn by a statement of its own, after the one that acquires. */

#include "common.pml"

#define TOKENS 2 /* per number: TokensPerAcquisition */
#define NUMBERS 4 /* that are drawn in a run */
#define nobody 255

Row row;
Countdown lease[N];
bool held[N];
byte number; /* the last one that was drawn */
byte lockedBy = nobody; /* whose transaction has the row locked */
byte highest; /* the highest token that a holder has had */

#define holderOf(p) (p + 1)

inline DrawToken(p, token) {
	number++;
	token = number * TOKENS
}

inline grant(p) {
	bool tokenRises;
	tokenRises = token > highest;
	assert(tokenRises);
	tokenRises = false;
	believe(p);
	highest = token
}

proctype Process(byte p) {
	byte token, passed;
	bool got;
end:
	if
	:: atomic { number < NUMBERS -> start(lease[p]) }
	fi;
#ifdef DRAWS_BEFORE_THE_ROW
	atomic { DrawToken(p, token) };
#endif
LockRow:
	atomic { lockedBy == nobody -> lockedBy = p };
	/* The statement reads the row only now. */
	d_step { Acquire(row, holderOf(p), got) }
#ifdef AUTOCOMMIT
	d_step { lockedBy = nobody }
	if
	:: !got -> goto ended
	:: got
	fi;
	/* INSERT ... SELECT: reads the row, then numbers its own. */
	d_step { got = row.holder == holderOf(p) }
	if
	:: !got -> goto ended
	:: got
	fi;
	atomic { DrawToken(p, token) };
#else
	if
	:: !got -> d_step { lockedBy = nobody } goto ended
	:: got
	fi;
#ifndef DRAWS_BEFORE_THE_ROW
	atomic { DrawToken(p, token) };
#endif
	d_step { lockedBy = nobody } /* COMMIT */
#endif
Answer:
	if
#ifdef TAKES_LATE_ANSWERS
	:: atomic { true -> start(lease[p]); grant(p) }
#else
	:: atomic { lease[p].left > 0 -> grant(p) }
	:: atomic { lease[p].left == 0 -> goto Unlock }
#endif
	fi;
holds:
	if
	:: atomic { lease[p].left == 0 -> held[p] = false; goto ended }
	:: atomic { held[p] = false; goto Unlock }
#ifdef HANDS_ON_WITHOUT_LIMIT
	:: atomic { lease[p].left > 0 && passed < TOKENS ->
#else
	:: atomic { lease[p].left > 0 && passed < TOKENS - 1 ->
#endif
		passed++;
#ifndef HANDS_ON_THE_TOKEN
		token++;
#endif
		grant(p); goto holds }
	fi;
Unlock:
	atomic { lockedBy == nobody -> Delete(row, holderOf(p), got) }
ended:
	atomic { token = 0; passed = 0; got = false; stop(lease[p]) }
	goto end
}

proctype Clock() {
	byte p;
end:
	do
	:: atomic { row.left > 0 || lease[0].left > 0 || lease[1].left > 0 ->
		tickRow(row);
		p = 0;
		do
		:: p < N -> tick(lease[p]); p++
		:: else -> break
		od;
		p = 0 }
	od
}

init { atomic { run Clock(); run Process(0); run Process(1) } }
