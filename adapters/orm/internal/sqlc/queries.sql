-- name: Withdraw :exec
UPDATE accounts SET balance = balance - 10 WHERE id = $1;
