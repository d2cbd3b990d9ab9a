// Package orm runs sqllock on the pools of sqlx, GORM, bun, ent and pgx, and guards their
// transactions.
package orm
